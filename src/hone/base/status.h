// base/status.h - errors as values: Status, Result<T>, and the macros that pass them on.
// A message is lower case, has no full stop, and says what was found and what was expected.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "hone/base/assert.h"

namespace hone {

enum class Code {
  kOk,
  kInvalid,      // bad input or an illegal schedule
  kNotFound,     // a file, a record or a name that is not there
  kUnsupported,  // well formed, but not handled
  kIo,           // the operating system refused
  kTimeout,
  kCancelled,  // interrupted by the user
  kInternal,   // a bug or a crash of a component
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  [[nodiscard]] bool ok() const { return code_ == Code::kOk; }
  [[nodiscard]] Code code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

inline Status ok_status() { return {}; }

// For example: error(Code::kInvalid, "found {} axes, expected {}", 3, 4).
template <typename... Args>
[[nodiscard]] Status error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
[[nodiscard]] Status invalid(fmt::format_string<Args...> format, Args&&... args) {
  return {Code::kInvalid, fmt::format(format, std::forward<Args>(args)...)};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}        // NOLINT: implicit by design
  Result(Status status) : value_(std::move(status)) {  // NOLINT: implicit by design
    HONE_ASSERT(!std::get<Status>(value_).ok(), "a Result without a value needs an error");
  }
  [[nodiscard]] bool ok() const { return std::holds_alternative<T>(value_); }
  [[nodiscard]] Status status() const { return ok() ? Status() : std::get<Status>(value_); }
  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &value(); }

 private:
  T& checked() {
    HONE_ASSERT(ok(), "value() of an error");
    return std::get<T>(value_);
  }
  std::variant<T, Status> value_;
};

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
