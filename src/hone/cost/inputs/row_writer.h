// cost/inputs/row_writer.h - fills a row of numbers from left to right or, in a dry run of the same
// code, collects the name of each number.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "hone/base/assert.h"

namespace hone::cost {

class RowWriter {
 public:
  explicit RowWriter(std::span<float> row) : row_(row) {}
  explicit RowWriter(std::vector<std::string>& names) : names_(&names) {}

  [[nodiscard]] bool names_only() const { return names_ != nullptr; }
  // Returns a name with an index or the like; numbers of a row need none.
  template <typename... Args>
  [[nodiscard]] std::string name(fmt::format_string<Args...> text, Args&&... args) const {
    return names_only() ? fmt::format(text, std::forward<Args>(args)...) : std::string();
  }
  void plain(std::string_view name, double value) {
    if (names_ != nullptr) {
      names_->emplace_back(name);
      return;
    }
    HONE_ASSERT(next_ < row_.size(), "a row is full");
    row_[next_++] = static_cast<float>(value);
  }
  void flag(std::string_view name, bool value) { plain(name, value ? 1 : 0); }
  void count(std::string_view name, double value) { plain(name, std::log2(1 + value)); }
  void ratio(std::string_view name, double value, double of) {
    plain(name, std::log2((value + 1e-3) / (of + 1e-3)));
  }
  void copy(std::span<const std::string> names, std::span<const float> values) {
    if (names_ != nullptr) {
      names_->insert(names_->end(), names.begin(), names.end());
      return;
    }
    HONE_ASSERT(next_ + values.size() <= row_.size(), "a row is full");
    std::copy(values.begin(), values.end(), row_.begin() + static_cast<std::ptrdiff_t>(next_));
    next_ += values.size();
  }
  [[nodiscard]] size_t written() const { return next_; }

 private:
  std::span<float> row_;
  std::vector<std::string>* names_ = nullptr;
  size_t next_ = 0;
};

}  // namespace hone::cost
