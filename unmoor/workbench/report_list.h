#pragma once

#include <map>
#include <string>
#include <vector>

namespace unmoor {

// The results and pages of one folder (not of folders in it) as pages to look at. Reads only, and only regular files whose path, behind
// its links, stays in the folder. One thread at a time.
class ReportFolder {
 public:
  // Pages are in that language: see render_report. Fails with Io if it is no folder that can be read.
  ReportFolder(const std::string& folder, std::string language);

  // The folder's results and pages, the newest first, as an HTML page with a form that asks for /page?file=NAME&file=NAME. What is not
  // listed is said: files beyond the newest 300, and those that are no results.
  std::string list();
  // One page from results of the folder. Fails as joined_report does, and with InvalidArgument on no file, on more than 32, and on a
  // name that is none of the folder's results.
  std::string page(const std::vector<std::string>& names) const;
  // A page that Unmoor wrote into the folder, as it is. Fails with InvalidArgument on every other file.
  std::string stored_page(const std::string& name) const;

 private:
  struct About {  // What a result says of itself.
    std::string stamp = {};  // Of the file when it was read: size and time.
    std::string problem = {};
    std::string tool = {}, created = {}, model = {}, target = {}, verdict = {}, sentence = {}, processor = {};
  };
  struct File;
  std::string path_of(const std::string& name) const;
  std::vector<File> files(bool& cut) const;
  const About& about(const File& file);

  std::string folder_;                 // As the user named it.
  std::string real_;                   // Behind its links.
  std::string language_;
  std::map<std::string, About> known_;  // By file name.
};

}  // namespace unmoor
