// compute/dag_rows_testing.cc - what reduces, scans, reads or updates rows.
#include <array>
#include <cmath>

#include "hone/compute/dag_testing.h"

namespace hone::compute::testing {

Dag softmax(int64_t outer, int64_t n, int64_t inner) {
  DagBuilder b;
  const ir::BufferPtr x = b.input("data", {outer, n, inner});
  const ir::BufferPtr y = b.output("out", {outer, n, inner});
  const ir::BufferPtr largest = b.intermediate("largest", {outer, inner});
  const ir::BufferPtr powers = b.intermediate("powers", {outer, n, inner});
  const ir::BufferPtr total = b.intermediate("total", {outer, inner});
  const auto all = [&] {
    return std::vector{make_axis("o", outer), make_axis("n", n), make_axis("i", inner)};
  };
  const auto rows = [&] { return std::vector{make_axis("o", outer), make_axis("i", inner)}; };
  {
    const auto axes = rows();
    const auto v = variables(axes);
    const Axis r = make_axis("r", n);
    b.max("", axes, {r}, View(largest), View(x).read({v[0], ir::variable(r.var), v[1]}));
  }
  {
    const auto axes = all();
    const auto v = variables(axes);
    b.pointwise("", axes, View(powers),
                ir::make(ir::Op::kExp, {View(x).read(v) - View(largest).read({v[0], v[2]})}));
  }
  {
    const auto axes = rows();
    const auto v = variables(axes);
    const Axis r = make_axis("r", n);
    b.sum("", axes, {r}, View(total), View(powers).read({v[0], ir::variable(r.var), v[1]}));
  }
  {
    const auto axes = all();
    const auto v = variables(axes);
    b.pointwise("softmax", axes, View(y), View(powers).read(v) / View(total).read({v[0], v[2]}));
  }
  return finish(std::move(b));
}

Dag centred_rows(int64_t rows, int64_t n) {
  DagBuilder b;
  const ir::BufferPtr x = b.input("data", {rows, n});
  const ir::BufferPtr y = b.output("out", {rows, n});
  const ir::BufferPtr total = b.intermediate("total", {rows});
  const std::vector<Axis> row = {make_axis("o", rows)}, along = {make_axis("r", n)};
  b.sum("", row, along, View(total),
        View(x).read({ir::variable(row[0].var), ir::variable(along[0].var)}));
  const std::vector<Axis> axes = {make_axis("o", rows), make_axis("n", n)};
  const std::vector<ir::Expr> v = variables(axes);
  const ir::Expr share = ir::constant_float(1.0 / static_cast<double>(n), DType::kF32);
  b.pointwise("centre", axes, View(y), View(x).read(v) - View(total).read({v[0]}) * share);
  return finish(std::move(b));
}

Dag normalized_rows(int64_t rows, int64_t n) {
  DagBuilder b;
  const ir::BufferPtr x = b.input("data", {rows, n});
  const ir::BufferPtr y = b.output("out", {rows, n});
  const ir::BufferPtr mean = b.intermediate("mean", {rows});
  const ir::BufferPtr square = b.intermediate("square", {rows});
  const ir::Expr share = ir::constant_float(1.0 / static_cast<double>(n), DType::kF32);
  const auto centred = [&](const ir::Expr& row, const ir::Expr& at) {
    return ir::load(x, {row, at}) - ir::load(mean, {row});
  };
  for (const ir::BufferPtr& sum : {mean, square}) {
    const std::vector<Axis> row = {make_axis("o", rows)}, along = {make_axis("r", n)};
    const ir::Expr o = ir::variable(row[0].var), r = ir::variable(along[0].var);
    const ir::Expr term = sum == mean ? ir::load(x, {o, r}) : centred(o, r) * centred(o, r);
    b.sum("", row, along, View(sum), term * share);
  }
  const std::vector<Axis> axes = {make_axis("o", rows), make_axis("n", n)};
  const std::vector<ir::Expr> v = variables(axes);
  const ir::Expr root =
      ir::make(ir::Op::kSqrt, {ir::load(square, {v[0]}) + ir::constant_float(1e-5, DType::kF32)});
  b.pointwise("normalize", axes, View(y), centred(v[0], v[1]) / root);
  return finish(std::move(b));
}

Dag running_sum(int64_t rows, int64_t n, std::optional<int64_t> columns) {
  DagBuilder b;
  std::vector<int64_t> shape = {rows, n};
  if (columns) shape.push_back(*columns);
  const ir::BufferPtr x = b.input("data", shape);
  const ir::BufferPtr y = b.output("out", shape);
  Stage stage;
  stage.name = stage.op = "running_sum";
  stage.axes = {make_axis("row", rows)};
  stage.extern_reads = {x};
  stage.outputs.push_back({.buffer = y});
  const ir::Expr row = ir::variable(stage.axes[0].var);
  const ir::BufferPtr sum = ir::make_buffer("sum", DType::kF32, {}, ir::Scope::kStack);
  const ir::VarPtr k = ir::make_var("k");
  std::vector<ir::Expr> at = {row, ir::variable(k)};
  if (columns) {
    stage.axes.push_back(make_axis("column", *columns));
    at.push_back(ir::variable(stage.axes[1].var));
  }
  stage.body = {ir::make_alloc(
      sum, {ir::make_store(sum, {}, ir::constant_float(0)),
            ir::make_for(k, ir::constant(0), ir::constant(n), ir::ForKind::kSerial,
                         {ir::make_store(sum, {}, ir::load(sum, {}) + ir::load(x, at)),
                          ir::make_store(y, at, ir::load(sum, {}))})})};
  b.add(std::move(stage));
  return finish(std::move(b));
}

Dag gather_rows(int64_t rows, int64_t n, int64_t table) {
  DagBuilder b;
  const auto data = b.input("data", {table, n}), out = b.output("out", {rows, n});
  const auto indices = b.input("indices", {rows}, DType::kI64);
  const Axis i = make_axis("i", rows), j = make_axis("j", n);
  const ir::Expr row = ir::variable(i.var), column = ir::variable(j.var);
  Stage stage{.name = "gather", .op = "gather", .axes = {i}};
  const ir::Expr from = clamped(ir::load(indices, {row}), table);
  stage.body = {ir::make_for(j.var, ir::constant(0), ir::constant(n), ir::ForKind::kSerial,
                             {ir::make_store(out, {row, column}, ir::load(data, {from, column}))})};
  stage.extern_reads = {data, indices};
  stage.outputs.push_back({.buffer = out});
  b.add(std::move(stage));
  return finish(std::move(b));
}

Dag add_rows(int64_t rows, int64_t n, int64_t updates) {
  DagBuilder b;
  const auto data = b.input("data", {rows, n}), out = b.output("out", {rows, n});
  const auto indices = b.input("indices", {updates}, DType::kI64);
  const auto values = b.input("values", {updates, n});
  const Axis i = make_axis("i", rows), j = make_axis("j", n), u = make_axis("u", updates),
             k = make_axis("k", n);
  const auto loop = [](const Axis& axis, const ir::Stmt& body) {
    return ir::make_for(axis.var, ir::constant(0), ir::constant(axis.extent), ir::ForKind::kSerial,
                        {body});
  };
  const auto [vi, vj, vu, vk] = std::array{ir::variable(i.var), ir::variable(j.var),
                                           ir::variable(u.var), ir::variable(k.var)};
  const std::vector<ir::Expr> to = {clamped(ir::load(indices, {vu}), rows), vk};
  Stage stage{.name = "add_rows", .op = "add_rows"};
  stage.body = {
      loop(i, loop(j, ir::make_store(out, {vi, vj}, ir::load(data, {vi, vj})))),
      loop(u, loop(k, ir::make_store(out, to, ir::load(out, to) + ir::load(values, {vu, vk}))))};
  stage.extern_reads = {data, indices, values};
  stage.outputs.push_back({.buffer = out});
  b.add(std::move(stage));
  return finish(std::move(b));
}

Dag arg_max(int64_t rows, int64_t n, int64_t columns) {
  DagBuilder b;
  const auto data = b.input("data", {rows, n, columns});
  const auto out = b.output("out", {rows, columns}, DType::kI64);
  Stage stage;
  stage.name = "extreme";
  stage.axes = {make_axis("row", rows), make_axis("column", columns)};
  stage.reduce = {make_axis("r", n)};
  const auto at = variables(stage.axes);
  const ir::Expr r = ir::variable(stage.reduce[0].var);
  std::vector<ir::Expr> old, other;
  const ir::Expr identity[] = {ir::cast(DType::kI32, ir::constant(0)),
                               ir::constant_float(-HUGE_VAL)};
  for (const ir::Expr& start : identity) {
    const auto buffer = b.intermediate("extreme", {rows, columns}, start->type);
    const auto part = ir::make_buffer(buffer->name + ".other", start->type, {rows, columns});
    old.push_back(ir::load(buffer, at));
    other.push_back(ir::load(part, at));
    stage.outputs.push_back({buffer, at, nullptr, start, nullptr, part});
  }
  const auto replace = [&](const ir::Expr& taken, const ir::Expr& place, const ir::Expr& value) {
    return std::array{ir::select(taken, place, old[0]), ir::select(taken, value, old[1])};
  };
  const ir::Expr x = ir::load(data, {at[0], r, at[1]});
  const auto next = replace(ir::less(old[1], x), ir::cast(DType::kI32, r), x);
  const ir::Expr first =
      ir::logical_and(ir::make(ir::Op::kEq, {old[1], other[1]}), ir::less(other[0], old[0]));
  const auto joined =
      replace(ir::make(ir::Op::kOr, {ir::less(old[1], other[1]), first}), other[0], other[1]);
  for (size_t i = 0; i < 2; ++i) {
    stage.outputs[i].value = next[i];
    stage.outputs[i].merge = joined[i];
  }
  const ir::BufferPtr place = stage.outputs[0].buffer;
  b.add(std::move(stage));
  const std::vector<Axis> a = {make_axis("row", rows), make_axis("column", columns)};
  b.pointwise("arg_max", a, View(out), ir::cast(DType::kI64, ir::load(place, variables(a))));
  return finish(std::move(b));
}

}  // namespace hone::compute::testing
