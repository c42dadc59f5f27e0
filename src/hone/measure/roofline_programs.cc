#include "hone/measure/roofline_programs.h"

#include <functional>

namespace hone::measure {
namespace {

using ir::Expr;
using ir::ForKind;
using ir::Stmt;

Stmt loop(const ir::VarPtr& v, int64_t extent, ForKind kind, Stmt body) {
  return ir::make_for(v, ir::constant(0), ir::constant(extent), kind, {std::move(body)});
}

// The buffers that all programs have, and nests over the lanes of their vectors.
struct Frame {
  Frame(const target::Cpu& target, const char* name, const Stream& stream)
      : chains(roofline_chains(target)),
        lanes(target.lanes(4)),
        given(ir::make_buffer("given", DType::kF32, {roofline_vectors(target), lanes})),
        result(ir::make_buffer("result", DType::kF32, {stream.tiles, chains, lanes})),
        data(ir::make_buffer("data", DType::kF32, {stream.tiles, stream.rows, chains, lanes})),
        acc(ir::make_buffer("acc", DType::kF32, {chains, lanes}, ir::Scope::kRegister)),
        operands(ir::make_buffer("operands", DType::kF32, {2, lanes}, ir::Scope::kRegister)) {
    program.name = name;
  }

  // For each vector: `statement(chain, lane)`.
  using Statement = std::function<Stmt(const Expr&, const Expr&)>;
  [[nodiscard]] Stmt each(int64_t vectors, const Statement& statement) const {
    const auto i = ir::make_var("i"), v = ir::make_var("v");
    const Stmt inner =
        loop(v, lanes, ForKind::kVectorized, statement(ir::variable(i), ir::variable(v)));
    return loop(i, vectors, ForKind::kUnrolled, inner);
  }
  // Register tiles filled from `given`, `body`, and the chains stored as the tile's result.
  [[nodiscard]] ir::Program around(const Stream& stream, const Stmt& body) {
    const Stmt fill = each(2, [&](const Expr& i, const Expr& v) {
      return ir::make_store(operands, {i, v}, ir::load(given, {i, v}));
    });
    const Stmt start = each(chains, [&](const Expr& i, const Expr& v) {
      return ir::make_store(acc, {i, v}, ir::load(given, {i + 2, v}));
    });
    const Stmt finish = each(chains, [&](const Expr& i, const Expr& v) {
      return ir::make_store(result, {ir::variable(tile), i, v}, ir::load(acc, {i, v}));
    });
    const Stmt work = ir::make_alloc(operands, {ir::make_alloc(acc, {fill, start, body, finish})});
    program.params = {{given, ir::Role::kInput}, {result, ir::Role::kOutput}};
    program.phases = {{loop(tile, stream.tiles, ForKind::kParallel, work), false}};
    return program;
  }
  // `statement(indices of data, chain, lane)` for every element of a tile, and again.
  using AtElement = std::function<Stmt(const std::vector<Expr>&, const Expr&, const Expr&)>;
  [[nodiscard]] Stmt sweeps(const Stream& stream, const AtElement& statement) const {
    const auto again = ir::make_var("again"), row = ir::make_var("row");
    const Stmt vectors = each(chains, [&](const Expr& i, const Expr& v) {
      return statement({ir::variable(tile), ir::variable(row), i, v}, i, v);
    });
    return loop(again, stream.repeats, ForKind::kSerial,
                loop(row, stream.rows, ForKind::kSerial, vectors));
  }

  int64_t chains, lanes;
  ir::BufferPtr given, result, data, acc, operands;
  ir::VarPtr tile = ir::make_var("tile");
  ir::Program program;
};

}  // namespace

int64_t roofline_chains(const target::Cpu& target) {
  return target.vector_registers >= 32 ? 24 : 12;
}
int64_t roofline_vectors(const target::Cpu& target) { return roofline_chains(target) + 2; }
int64_t roofline_row(const target::Cpu& target) {
  return roofline_chains(target) * target.lanes(4);
}

ir::Program fma_program(const target::Cpu& target, int64_t tiles, int64_t iterations) {
  const Stream stream = {.tiles = tiles};
  Frame frame(target, "fma", stream);
  const auto k = ir::make_var("k"), u = ir::make_var("u");
  const Stmt update = frame.each(frame.chains, [&](const Expr& i, const Expr& v) {
    const Expr product =
        ir::load(frame.acc, {i, v}) * ir::load(frame.operands, {ir::constant(0), v});
    return ir::make_store(frame.acc, {i, v},
                          product + ir::load(frame.operands, {ir::constant(1), v}));
  });
  return frame.around(stream, loop(k, iterations, ForKind::kSerial,
                                   loop(u, kFmaUnroll, ForKind::kUnrolled, update)));
}

ir::Program read_program(const target::Cpu& target, const Stream& stream) {
  Frame frame(target, "read", stream);
  const Stmt body =
      frame.sweeps(stream, [&](const std::vector<Expr>& at, const Expr& i, const Expr& v) {
        return ir::make_store(frame.acc, {i, v},
                              ir::load(frame.acc, {i, v}) + ir::load(frame.data, at));
      });
  ir::Program program = frame.around(stream, body);
  program.params.push_back({frame.data, ir::Role::kInput});
  return program;
}

ir::Program write_program(const target::Cpu& target, const Stream& stream) {
  Frame frame(target, "write", stream);
  const Stmt body =
      frame.sweeps(stream, [&](const std::vector<Expr>& at, const Expr&, const Expr& v) {
        return ir::make_store(frame.data, at, ir::load(frame.operands, {ir::constant(0), v}));
      });
  ir::Program program = frame.around(stream, body);
  program.params.push_back({frame.data, ir::Role::kOutput});
  return program;
}

}  // namespace hone::measure
