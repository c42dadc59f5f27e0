// errors.h - Hone's errors as Python's exceptions, which hone/errors.py defines.
#pragma once

#include <hone/status.h>
#include <nanobind/nanobind.h>

namespace hone::python {

// Raises the exception of the status, which is not ok: InputError for bad input, UnsupportedError
// for what Hone does not handle, KeyboardInterrupt for a job that the user ended, else
// InternalError. It must hold the GIL.
[[noreturn]] void raise(const Status& status);
[[noreturn]] void raise_input_error(const std::string& message);

template <typename T>
T value_or_raise(Result<T>&& result) {
  if (!result.ok()) raise(result.status());
  return std::move(result).value();
}

}  // namespace hone::python
