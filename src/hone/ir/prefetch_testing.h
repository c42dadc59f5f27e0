// ir/prefetch_testing.h - helpers for tests of prefetching: they find loops, and the lines of a
// buffer that a program prefetches.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "hone/ir/interpreter.h"
#include "hone/ir/pass_testing.h"

namespace hone::ir::testing {

inline constexpr int64_t kLine = 16;  // floats in a cache line

inline Stmt loop(const VarPtr& v, int64_t extent, std::vector<Stmt> body,
                 ForKind kind = ForKind::kSerial) {
  return make_for(v, constant(0), constant(extent), kind, std::move(body));
}

// Returns the first statement of a kind, or null if there is none.
inline Stmt first(const Stmt& s, StmtKind kind) {
  if (s->kind == kind) return s;
  for (const Stmt& child : s->body) {
    if (Stmt found = first(child, kind)) return found;
  }
  return nullptr;
}

inline Stmt zero(const BufferPtr& buffer) {
  std::vector<Expr> at;
  std::vector<VarPtr> vars;
  for (size_t d = 0; d < buffer->shape.size(); ++d) {
    vars.push_back(make_var("z"));
    at.push_back(variable(vars.back()));
  }
  Stmt s = make_store(buffer, at, constant_float(0));
  for (size_t d = vars.size(); d-- > 0;) s = loop(vars[d], buffer->shape[d], {s});
  return s;
}

// Returns how often the second phase prefetches each line of a buffer, followed by as many lines
// behind it.
inline std::vector<float> prefetched(Program program, const BufferPtr& buffer) {
  const BufferPtr counts = make_buffer("counts", DType::kF32, {2 * buffer->num_elements() / kLine});
  const auto as_store = [&](const auto& self, const Stmt& s) -> Stmt {
    if (s->kind == StmtKind::kPrefetch && s->buffer == buffer) {
      for (size_t d = 0; d + 1 < s->indices.size(); ++d)
        EXPECT_TRUE(is_const_int(s->indices[d], 0));
      const std::vector<Expr> at = {floordiv(s->indices.back(), kLine)};
      return make_store(counts, at, load(counts, at) + constant_float(1));
    }
    std::vector<Stmt> body;
    for (const Stmt& child : s->body) body.push_back(self(self, child));
    return s->body.empty() ? s : with_body(*s, std::move(body));
  };
  program.phases[1].body = as_store(as_store, program.phases[1].body);
  program.phases.insert(program.phases.begin(), {zero(counts)});
  program.params.push_back({counts, Role::kOutput});
  std::vector<Tensor> arguments = random_arguments(program, 1);
  const Status status = run(program, arguments);
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<float> result;
  for (int64_t i = 0; i < counts->num_elements(); ++i)
    result.push_back(static_cast<float>(arguments.back().at(i)));
  return result;
}

}  // namespace hone::ir::testing
