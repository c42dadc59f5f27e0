#include "hone/backend/cpu/sample_programs_testing.h"

namespace hone::backend::cpu {
namespace {

using ir::constant;
using ir::Expr;
using ir::ForKind;
using ir::Stmt;
using ir::variable;
using ir::VarPtr;

Stmt loop(const VarPtr& v, int64_t extent, ForKind kind, std::vector<Stmt> body) {
  return ir::make_for(v, constant(0), constant(extent), kind, std::move(body));
}

}  // namespace

ir::Program gemm_program(const GemmShape& s) {
  const auto a = ir::make_buffer("A", DType::kF32, {s.m, s.k});
  const auto b = ir::make_buffer("B", DType::kF32, {s.n / s.tile_n, s.k, s.tile_n});
  const auto c = ir::make_buffer("C", DType::kF32, {s.m, s.n});
  const auto acc = ir::make_buffer("acc", DType::kF32, {s.tile_m, s.tile_n}, ir::Scope::kRegister);
  const auto tile = ir::make_var("tile");
  const auto k = ir::make_var("k");
  const int64_t columns = s.n / s.tile_n;
  const Expr row = ir::floordiv(variable(tile), columns);
  const Expr column = ir::floormod(variable(tile), columns);
  // Three nests over the same tile: clear, multiply, store.
  const auto nest = [&](const auto& statement) {
    const auto i = ir::make_var("i");
    const auto j = ir::make_var("j");
    const auto v = ir::make_var("v");
    const Expr lane = variable(j) * s.lanes + variable(v);
    return loop(i, s.tile_m, ForKind::kUnrolled,
                {loop(j, s.tile_n / s.lanes, ForKind::kUnrolled,
                      {loop(v, s.lanes, ForKind::kVectorized, {statement(variable(i), lane)})})});
  };
  const auto c_index = [&](const Expr& i, const Expr& lane) {
    return std::vector<Expr>{row * s.tile_m + i, column * s.tile_n + lane};
  };
  const Stmt init = nest([&](const Expr& i, const Expr& lane) {
    return ir::make_store(acc, {i, lane}, ir::constant_float(0));
  });
  const auto k1 = ir::make_var("k1");
  const Expr at = variable(k) * s.unroll_k + variable(k1);
  const Stmt update = nest([&](const Expr& i, const Expr& lane) {
    const Expr product = ir::load(a, {row * s.tile_m + i, at}) * ir::load(b, {column, at, lane});
    return ir::make_store(acc, {i, lane}, ir::load(acc, {i, lane}) + product);
  });
  const Stmt step = loop(k1, s.unroll_k, ForKind::kUnrolled, {update});
  const Stmt finish = nest([&](const Expr& i, const Expr& lane) {
    return ir::make_store(c, c_index(i, lane), ir::load(acc, {i, lane}));
  });
  const Stmt body =
      ir::make_alloc(acc, {init, loop(k, s.k / s.unroll_k, ForKind::kSerial, {step}), finish});
  ir::Program program;
  program.name = "gemm";
  program.params = {{a, ir::Role::kInput}, {b, ir::Role::kConstant}, {c, ir::Role::kOutput}};
  program.phases = {{loop(tile, s.m / s.tile_m * columns, ForKind::kParallel, {body}), false}};
  return program;
}

ir::Program conv_program(const ConvShape& s) {
  const auto in = ir::make_buffer("In", DType::kF32, {s.height + 2, s.width + 2, s.in_channels});
  const auto weight = ir::make_buffer("W", DType::kF32,
                                      {s.out_channels / s.tile_oc, 3, 3, s.in_channels, s.tile_oc});
  const auto out = ir::make_buffer("Out", DType::kF32, {s.height, s.width, s.out_channels});
  const auto acc = ir::make_buffer("acc", DType::kF32, {s.tile_w, s.tile_oc}, ir::Scope::kRegister);
  const auto tile = ir::make_var("tile");
  const auto h = ir::make_var("h");
  const auto kh = ir::make_var("kh");
  const auto kw = ir::make_var("kw");
  const auto ic = ir::make_var("ic");
  const int64_t across = s.width / s.tile_w;
  const Expr block = ir::floordiv(variable(tile), across);
  const Expr w0 = ir::floormod(variable(tile), across) * s.tile_w;
  const auto nest = [&](const auto& statement) {
    const auto i = ir::make_var("w");
    const auto j = ir::make_var("j");
    const auto v = ir::make_var("v");
    const Expr lane = variable(j) * s.lanes + variable(v);
    return loop(i, s.tile_w, ForKind::kUnrolled,
                {loop(j, s.tile_oc / s.lanes, ForKind::kUnrolled,
                      {loop(v, s.lanes, ForKind::kVectorized, {statement(variable(i), lane)})})});
  };
  const Stmt init = nest([&](const Expr& i, const Expr& lane) {
    return ir::make_store(acc, {i, lane}, ir::constant_float(0));
  });
  const Stmt update = nest([&](const Expr& i, const Expr& lane) {
    const Expr product =
        ir::load(in, {variable(h) + variable(kh), w0 + i + variable(kw), variable(ic)}) *
        ir::load(weight, {block, variable(kh), variable(kw), variable(ic), lane});
    return ir::make_store(acc, {i, lane}, ir::load(acc, {i, lane}) + product);
  });
  const Stmt finish = nest([&](const Expr& i, const Expr& lane) {
    return ir::make_store(out, {variable(h), w0 + i, block * s.tile_oc + lane},
                          ir::load(acc, {i, lane}));
  });
  const Stmt reduce =
      loop(kh, 3, ForKind::kSerial,
           {loop(kw, 3, ForKind::kSerial, {loop(ic, s.in_channels, ForKind::kSerial, {update})})});
  const Stmt body =
      loop(h, s.height, ForKind::kSerial, {ir::make_alloc(acc, {init, reduce, finish})});
  ir::Program program;
  program.name = "conv";
  program.params = {
      {in, ir::Role::kInput}, {weight, ir::Role::kConstant}, {out, ir::Role::kOutput}};
  program.phases = {
      {loop(tile, across * (s.out_channels / s.tile_oc), ForKind::kParallel, {body}), false}};
  return program;
}

}  // namespace hone::backend::cpu
