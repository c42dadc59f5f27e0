// ir/interpreter.h - runs a program in order on the host: the oracle for small shapes.
//
// Every load and store is checked against the buffer's shape; the error names buffer, index and
// shape. Arithmetic is done in double and int64 (ir/scalar.h) and rounded to the buffer's type when
// stored. Outputs, workspaces and allocations start as NaN (integers: a pattern), so that a read
// before a write shows. Both operands of "and" and "or" are evaluated.
#pragma once

#include <functional>
#include <map>
#include <span>

#include "hone/base/status.h"
#include "hone/ir/stmt.h"
#include "hone/tensor/tensor.h"

namespace hone::ir {

// A function that kExtern statements call; its arguments are copies of the buffers, outputs last;
// whatever it changes is copied back.
using ExternFunction = std::function<Status(std::span<Tensor> args)>;
using ExternTable = std::map<std::string, ExternFunction, std::less<>>;

struct RunOptions {
  // Floats keep double precision in every buffer; arguments may then be of type f64 as well.
  bool float64 = false;
  // Prepare phases don't run; packed arguments are given.
  bool skip_prepare = false;
  // Outputs begin with what the arguments hold, not with garbage: a program may write a part only.
  bool keep_outputs = false;
  // Ends with Code::kTimeout after about so many operations.
  int64_t max_operations = 100'000'000'000;
  int64_t* operations = nullptr;  // receives how many they were, also of a run that was ended
  const ExternTable* externs = nullptr;
};

// What the loads (or the stores) of one buffer touched.
struct Touch {
  int statement;  // the store statement they belong to, counted in program order; -1: conditions
                  // and loop bounds
  BufferPtr buffer;
  bool is_store;
  int64_t count = 0;               // loads or stores done
  int64_t distinct = 0;            // different elements among them
  std::vector<int64_t> low, high;  // the box around them, both ends included; empty if count is 0
};
struct TouchReport {
  std::vector<Touch> by_statement;
  std::vector<Touch> by_buffer;  // statement is -1
  int64_t operations = 0;        // expression nodes and statements evaluated
  // The entry of a buffer, or null.
  [[nodiscard]] const Touch* find(const BufferPtr& buffer, bool is_store) const;
};

// Runs all phases. args are the params' buffers in order, dense row-major; their data is read and
// written in place. A param whose buffer has `values` takes those and ignores its argument.
[[nodiscard]] Status run(const Program& program, std::span<Tensor> args,
                         const RunOptions& options = {}, TouchReport* report = nullptr);

// Arguments for a test run: inputs and constants are random (floats normal; integers 0 to 3), but
// for known zeros; the rest is zero.
[[nodiscard]] std::vector<Tensor> random_arguments(const Program& program, uint64_t seed);

}  // namespace hone::ir
