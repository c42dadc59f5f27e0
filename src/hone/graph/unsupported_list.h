// graph/unsupported_list.h - collects what a model has that is not supported, so that one message
// names all of it.
#pragma once

#include <string>
#include <vector>

#include "hone/base/status.h"

namespace hone::graph {

class UnsupportedList {
 public:
  // Keeps a status with Code::kUnsupported and returns ok; returns every other one.
  [[nodiscard]] Status add(const Status& status);
  // Returns ok if nothing was kept, else one error that names the file once. What many nodes have
  // in common is said once, with their number and the names of a few, and of very many different
  // things the first are said.
  [[nodiscard]] Status all(const std::string& file) const;

 private:
  std::vector<std::string> found_;
};

}  // namespace hone::graph
