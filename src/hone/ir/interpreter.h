// ir/interpreter.h - runs a program in order on the host. It is the oracle for small shapes.
//
// Every load and store is checked against the buffer's shape; the error names buffer, index and
// shape. Arithmetic is done in double and int64 (ir/scalar.h) and rounded to the buffer's type when
// stored. Threads of a GPU run one after the other, but roles take turns when they wait for
// signals. Outputs, workspaces and allocations start as NaN (integers: as a fixed pattern), so that
// a read before a write shows. Both operands of "and" and "or" are evaluated.
#pragma once

#include <functional>
#include <map>
#include <span>

#include "hone/base/status.h"
#include "hone/ir/stmt.h"
#include "hone/tensor/tensor.h"

namespace hone::ir {

// A function that kExtern statements call. Its arguments are copies of the buffers, outputs last,
// and whatever it changes is copied back.
using ExternFunction = std::function<Status(std::span<Tensor> args)>;
using ExternTable = std::map<std::string, ExternFunction, std::less<>>;

struct RunOptions {
  // Floats keep double precision in every buffer; arguments may then be of type f64 as well.
  bool float64 = false;
  // The phases that prepare constants don't run; the packed arguments are given.
  bool skip_prepare = false;
  // Outputs start with what the arguments hold, not with NaN, for a program that writes only a
  // part.
  bool keep_outputs = false;
  // The run ends with Code::kTimeout after about this many operations.
  int64_t max_operations = 100'000'000'000;
  int64_t* operations = nullptr;  // receives the number of operations, also if the run fails
  const ExternTable* externs = nullptr;
  // It is an error if two threads of a GPU, or two tiles of a phase, access an element in no order
  // and one of them stores, or if an asynchronous copy is used before it was waited for. This does
  // not work together with a report.
  bool check_races = false;
};

// The elements that the loads, or the stores, of one buffer accessed.
struct Touch {
  int statement;  // store statement that they belong to, counted in program order; -1 for those of
                  // conditions and loop bounds
  BufferPtr buffer;
  bool is_store;
  int64_t count = 0;     // number of loads or stores
  int64_t distinct = 0;  // number of different elements
  std::vector<int64_t> low,
      high;  // bounding box of the elements, both ends included; empty if count is 0
};
struct TouchReport {
  std::vector<Touch> by_statement;
  std::vector<Touch> by_buffer;  // entries with statement -1
  int64_t operations = 0;        // number of expression nodes and statements evaluated
  // Returns the entry of a buffer in by_buffer, or null.
  [[nodiscard]] const Touch* find(const BufferPtr& buffer, bool is_store) const;
};

// Runs all phases. The tensors in `args` are those of the params in order, dense and row-major;
// they are read and written in place. A param whose buffer has `values` takes those and ignores its
// argument.
[[nodiscard]] Status run(const Program& program, std::span<Tensor> args,
                         const RunOptions& options = {}, TouchReport* report = nullptr);

// Makes arguments for a test run. Inputs and constants are random (floats are normal, integers 0 to
// 3), except for known zeros; all other params are zero.
[[nodiscard]] std::vector<Tensor> random_arguments(const Program& program, uint64_t seed);

}  // namespace hone::ir
