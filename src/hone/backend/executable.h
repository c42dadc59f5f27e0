// backend/executable.h - a compiled loop program. Its code is bytes that only the back end that
// made them understands; what others need, so that they can store, send, load and run it, is beside
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hone/code_figures.h"
#include "hone/target/kind.h"

namespace hone::backend {

// Bytes that do not change and that all copies share.
class SharedBytes {
 public:
  SharedBytes() = default;
  SharedBytes(std::string bytes)  // NOLINT(google-explicit-constructor): a string is such bytes
      : bytes_(std::make_shared<const std::string>(std::move(bytes))) {}
  [[nodiscard]] const std::string& str() const {
    static const std::string none;
    return bytes_ ? *bytes_ : none;
  }
  [[nodiscard]] bool empty() const { return str().empty(); }
  friend bool operator==(const SharedBytes& a, const SharedBytes& b) { return a.str() == b.str(); }

 private:
  std::shared_ptr<const std::string> bytes_;
};

// One phase of the program.
struct EntryPoint {
  std::string symbol;
  // The phase consists of so many independent tiles. On a GPU, a block of threads runs one.
  int64_t num_tiles = 1;
  bool prepare = false;  // it prepares constants and runs once, before the others
  // A GPU's code only: the threads of a block, and the shared memory that a launch asks for beside
  // what the code declares.
  int threads = 1;
  int64_t shared_bytes = 0;
};

// The cost of a compilation.
struct CompileCost {
  // Number of the compiler's instructions before and after its passes.
  int64_t instructions = 0, optimized = 0;
  double emit = 0, optimize = 0, generate = 0;  // CPU seconds of the thread
  [[nodiscard]] double seconds() const { return emit + optimize + generate; }
};

struct Executable {
  target::Kind kind = target::Kind::kCpu;  // its back end made it and loads it
  SharedBytes code;
  // The code of the entry points that prepare constants, if it is separate, so that several
  // executables share it. It is always for CPUs.
  SharedBytes prepare_code;
  std::vector<EntryPoint> entries;  // one per phase, in the order of the program
  int64_t scratch_bytes = 0;        // scratch memory per thread; the maximum over the entry points
  int64_t code_bytes = 0;           // size of the instructions
  // Hash of the code, which is equal for programs that differ only in names.
  uint64_t content = 0;
  CompileCost cost;
  std::optional<CodeFigures> figures = {};  // what a binary for a GPU says; none: nothing is known

  [[nodiscard]] bool prepares_constants() const;
};

// Returns the part of an executable that prepares constants. Where that code is separate, it is of
// the kind of CPUs.
[[nodiscard]] Executable prepare_part(const Executable& executable);

}  // namespace hone::backend
