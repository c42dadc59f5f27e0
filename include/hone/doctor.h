// doctor.h - what this machine lacks for compiling and tuning, and how to get it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hone/export.h"

namespace hone {

struct Finding {
  enum class State : uint8_t {
    kOk,
    kWarning,  // it works, but worse than it could: times vary, or something cannot be asked for
    kMissing
  };
  std::string name;  // of what was looked at, such as "linker"
  State state = State::kOk;
  // True if models cannot be tuned for this machine's CPU without it. Findings that are not needed
  // are about other devices, or about training cost models.
  bool needed = false;
  std::string found;  // in words
  std::string cure;   // what to do about it; empty if all is well
};
// Returns "ok", "warning" or "missing".
[[nodiscard]] HONE_API std::string state_name(Finding::State state);

struct DoctorOptions {
  std::string db;  // the database of measurements, as RecordOptions::db
};
// Looks at everything, which takes about a second; opening a GPU's driver may take more. It
// changes nothing: no database and no folder is created. A kernel is compiled, run by the worker
// and verified.
[[nodiscard]] HONE_API std::vector<Finding> examine_machine(const DoctorOptions& options = {});
// Returns whether models can be tuned here: nothing that is needed is missing.
[[nodiscard]] HONE_API bool can_tune(const std::vector<Finding>& findings);

}  // namespace hone
