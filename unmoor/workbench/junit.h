#pragma once

#include <string>
#include <vector>

#include "unmoor/workbench/align.h"

namespace unmoor {

// One test case of a JUnit file, as continuous integration systems read it.
struct JUnitCase {
  std::string group;         // The attribute classname.
  std::string name;
  std::string failure = {};  // Why it failed, in a line; empty if it did not.
  std::string skipped = {};  // Why nothing can be said of it; empty if something can.
};

// A suite as JUnit XML, in UTF-8. Characters that XML 1.0 cannot hold are replaced.
std::string junit_xml(const std::string& suite, const std::vector<JUnitCase>& cases);

// A case for every output and every value; what is suspicious or differs has failed.
std::vector<JUnitCase> junit_cases(const AlignResult& result);

}  // namespace unmoor
