// backend/gpu/code_writer.h - lines of C with the indentation of the braces around them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace hone::backend::gpu {

class CodeWriter {
 public:
  void line(std::string_view text) {
    last_ = text;
    out_.append(static_cast<size_t>(depth_) * 2, ' ');
    out_ += text;
    out_ += '\n';
  }
  // Writes what stands before a brace, and the brace.
  void open(std::string_view text) {
    line(text.empty() ? "{" : fmt::format("{} {{", text));
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }
  [[nodiscard]] const std::string& last_line() const { return last_; }
  [[nodiscard]] std::string take() && { return std::move(out_); }

 private:
  std::string out_;
  std::string last_;  // without its indentation
  int depth_ = 0;
};

}  // namespace hone::backend::gpu
