// status.h - errors as values: Status, and Result<T>, which is a value or the error for which there
// is none. Only want of memory or threads is an exception (std::bad_alloc, std::system_error). A
// message is lower case, has no full stop, and says what was found and what was expected.
//
//   hone::Result<hone::Model> model = hone::Model::load("resnet18.so");
//   if (!model.ok()) std::cerr << model.status().message() << '\n';
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

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

// Stops the program, because its code does not keep to what a function requires.
[[noreturn]] inline void stop_at_bug(const char* what) {
  std::fprintf(stderr, "bug: %s\n", what);
  std::abort();
}

// A value, or an error. Taking the value of an error stops the program.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}        // NOLINT: implicit by design
  Result(Status status) : value_(std::move(status)) {  // NOLINT: implicit by design
    if (std::get<Status>(value_).ok()) stop_at_bug("a Result without a value needs an error");
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
    if (!ok()) stop_at_bug("value() of an error");
    return std::get<T>(value_);
  }
  std::variant<T, Status> value_;
};

}  // namespace hone
