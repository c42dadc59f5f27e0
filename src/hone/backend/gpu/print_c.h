// backend/gpu/print_c.h - prints loop programs as OpenCL C or CUDA C: one kernel per phase that
// runs with the model. Phases that prepare constants are left out; the host runs them.
//
// A kernel of OpenCL takes for each param of its program a buffer and the byte where the param
// begins in it, a kernel of CUDA a pointer; then, both, the number of the first tile. A group of
// threads runs one tile. Params begin at multiples of 16 bytes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hone/backend/gpu/dialect.h"
#include "hone/base/status.h"
#include "hone/ir/stmt.h"

namespace hone::backend::gpu {

struct Kernel {
  std::string symbol;
  size_t phase = 0;  // its number in the program
  int64_t tiles = 1;
  int threads = 1;            // the size of a group
  int64_t shared_bytes = 0;   // all shared memory of a group
  int64_t dynamic_bytes = 0;  // the part of it that a launch gives: all of it in CUDA above 48 KiB
  int64_t private_bytes = 0;  // arrays of a thread, before the compiler keeps them in registers
};

struct PrintOptions {
  std::string symbol_prefix = "hone_kernel";  // phase i is named <prefix>_<i>
  std::string comment;                        // lines at the head, such as the schedule
  // More private memory is an error: of a thread, and of all threads of a group in OpenCL, whose
  // devices that are CPUs have it on a stack.
  int64_t max_private_bytes = 256 << 10;
  int64_t max_private_group_bytes = 4 << 20;
  int64_t max_nodes = 400'000;  // nodes of expressions that are printed
  // By symbol, in CUDA C: the blocks of a kernel that an SM is to hold (residency.h).
  std::map<std::string, int> resident_blocks = {};
};

// The text of kernels of several programs, which is compiled at once.
class SourcePrinter {
 public:
  explicit SourcePrinter(Dialect dialect);
  ~SourcePrinter();
  SourcePrinter(SourcePrinter&&) noexcept;
  SourcePrinter& operator=(SourcePrinter&&) noexcept;
  // Adds the kernels of a program, which ir::verify() accepts, and returns them in the order of its
  // phases. A program that cannot be printed is an error of code kUnsupported and adds nothing.
  [[nodiscard]] Result<std::vector<Kernel>> add(const ir::Program& program,
                                                const PrintOptions& options = {});
  [[nodiscard]] std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct Source {
  std::string text;
  std::vector<Kernel> kernels;
};
[[nodiscard]] Result<Source> print_c(const ir::Program& program, Dialect dialect,
                                     const PrintOptions& options = {});

}  // namespace hone::backend::gpu
