#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "unmoor/catalog/aten.h"
#include "unmoor/catalog/facts.h"

namespace unmoor {

// One platform and version that the catalogue has.
struct CatalogItem {
  std::string platform;
  std::string version;
  bool older = false;  // There is a newer one, which the platform's bare name means.
  bool user = false;   // From the user's folder.
};

// What is known about platforms that are not here: the files compiled in, and the user's own over them. Files are opened when
// asked for. Any thread may use it.
class Catalog {
 public:
  // `folder`: the user's files, *.json, each in place of the one of its platform and version, or beside it. A folder that is not
  // there is none. Fails with InvalidModel on a broken file in it, or one that is like what is not there, with Io on one that cannot
  // be read.
  explicit Catalog(const std::string& folder = user_folder());
  // $UNMOOR_CATALOG, else unmoor/catalog in the user's config folder (XDG_CONFIG_HOME, HOME/.config); empty if there is none.
  static std::string user_folder();

  const std::vector<CatalogItem>& items() const { return items_; }  // By name, the newest version first.
  bool has(std::string_view platform) const;                        // With or without @version.
  // "torch-npu", "torch-npu@7.3", "tensorrt@10": the version that is written, else the newest that begins with it. Fails with
  // InvalidArgument, naming what there is.
  std::shared_ptr<const Facts> find(std::string_view platform) const;
  // The file that `like`, `same_as` or `fallback` of `from` names, as find() reads it; never `from` itself: a user's file that is
  // like the one whose place it takes means that one. Null if there is none.
  std::shared_ptr<const Facts> linked(const Facts& from, std::string_view link) const;

  // What a platform says of a node, with its fallback counted: refused there but taken by the platform behind it is Fallback. A call
  // of ATen is answered by its own name where the platform runs these, else by the operators of ONNX that torch.onnx would export it
  // as; of "aten::add.*" the overload is not known.
  CatalogAnswer answer(const Facts& facts, const CatalogQuestion& question) const;
  // Whether ONNX defines the operator as a function of others in this opset, which some platforms then run.
  bool is_function(std::string_view op, int64_t opset) const;
  // The operators of ONNX that a call of ATen is exported as: forms, of which its arguments choose one, each the operators that it needs
  // together. Empty if none is known.
  std::vector<std::vector<std::string>> onnx_forms(std::string_view call) const;
  // The entry of an operator in ONNX's own table: category, difficulty, decomposes_to. Null JSON if it is not standard.
  nlohmann::json standard(std::string_view op) const;

 private:
  struct File {
    std::string name;
    std::string_view text;               // Of files compiled in.
    std::shared_ptr<const Facts> facts;  // Once opened.
  };

  // By whole name, leaving one file out; null if there is none.
  std::shared_ptr<const Facts> open(std::string_view name, const Facts* except = nullptr) const;
  const CatalogItem* item_for(std::string_view platform) const;  // Null if there is none.
  void check_links(const Facts& facts, const std::string& from) const;
  CatalogAnswer own_answer(const Facts& facts, const CatalogQuestion& question, int depth) const;
  CatalogAnswer onnx_answer(const Facts& facts, const CatalogQuestion& question) const;
  CatalogAnswer calls_answer(const Facts& facts, const CatalogQuestion& question, CallRole role) const;
  CatalogAnswer exported_answer(const Facts& facts, const CatalogQuestion& question, int depth) const;
  CatalogAnswer exported_form(const Facts& facts, const CatalogQuestion& question, const std::vector<std::string>& form) const;
  void read_forms() const;
  // What a file, or the one that it is like, says of an operator; and which of the two.
  std::pair<std::shared_ptr<const Facts>, nlohmann::json> entry(const Facts& facts, std::string_view op) const;

  mutable std::mutex mutex_;  // Guards File::facts.
  mutable std::vector<File> files_;  // The user's before ours.
  std::vector<CatalogItem> items_;
  mutable std::mutex forms_mutex_;  // Guards forms_.
  mutable std::map<std::string, std::vector<std::vector<std::string>>, std::less<>> forms_;  // Of ONNX, by call; empty until asked for.
};

// Whether the first version is older than the second: numbers by value, the rest by bytes; 1.0-variant is older than 1.0.
bool older_version(std::string_view a, std::string_view b);

}  // namespace unmoor
