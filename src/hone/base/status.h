// base/status.h - makes errors (hone/status.h) of formatted messages, and passes them on.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "hone/base/assert.h"
#include "hone/status.h"

namespace hone {

// For example: error(Code::kInvalid, "found {} axes, expected {}", 3, 4).
template <typename... Args>
[[nodiscard]] Status error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
[[nodiscard]] Status invalid(fmt::format_string<Args...> format, Args&&... args) {
  return {Code::kInvalid, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace hone

#define HONE_CONCAT_INNER(a, b) a##b
#define HONE_CONCAT(a, b) HONE_CONCAT_INNER(a, b)
#define HONE_RETURN_IF_ERROR(expr)                                                  \
  do {                                                                              \
    if (::hone::Status hone_status = (expr); !hone_status.ok()) return hone_status; \
  } while (0)
// For example: HONE_ASSIGN_OR_RETURN(auto x, compute_x());
#define HONE_ASSIGN_OR_RETURN(decl, expr) \
  HONE_ASSIGN_OR_RETURN_IMPL(HONE_CONCAT(hone_result_, __LINE__), decl, expr)
#define HONE_ASSIGN_OR_RETURN_IMPL(tmp, decl, expr) \
  auto tmp = (expr);                                \
  if (!tmp.ok()) return tmp.status();               \
  decl = std::move(tmp).value()
