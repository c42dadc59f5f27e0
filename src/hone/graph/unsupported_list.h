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
  [[nodiscard]] Status add(const Status& status) {
    if (status.code() != Code::kUnsupported) return status;
    found_.push_back(status.message());
    return ok_status();
  }
  // Returns ok if nothing was kept, else one error that names the file once.
  [[nodiscard]] Status all(const std::string& file) const {
    std::string text;
    for (const std::string& message : found_) {
      const std::string where = file + ": ";
      const size_t from = !text.empty() && message.starts_with(where) ? where.size() : 0;
      text += (text.empty() ? "" : "; ") + message.substr(from);
    }
    return text.empty() ? ok_status() : Status(Code::kUnsupported, text);
  }

 private:
  std::vector<std::string> found_;
};

}  // namespace hone::graph
