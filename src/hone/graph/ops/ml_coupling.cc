// The iteration changes one class's probability at a time. A turn of the loop is one such step, so
// that the graph does not grow with the number of classes.
#include "hone/graph/ops/ml_coupling.h"

#include "hone/graph/ops/loop_builder.h"

namespace hone::graph {
namespace {

constexpr int64_t kMostSweeps = 100;  // over all classes, as in libsvm
constexpr double kTolerance = 0.005;  // divided by the number of classes

// [N, classes, classes]: element (i, j) is the probability of i given that it is i or j, or of j if
// `transposed`; 0 if they are one class.
ValueId squares(ExpandContext& c, ValueId first, int64_t classes, bool transposed) {
  const int64_t pairs = c.shape_of(first)[1];
  Tensor same(DType::kBool, {classes, classes});
  std::vector<int64_t> places(static_cast<size_t>(classes * classes));
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i) {
    same.set(i * classes + i, 1);
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      const int64_t above = i * classes + j, below = j * classes + i;
      places[static_cast<size_t>(transposed ? below : above)] = pair;
      places[static_cast<size_t>(transposed ? above : below)] = pairs + pair;
    }
  }
  const ValueId second = c.add("Sub", {c.scalar(c.dtype_of(first), 1), first});
  const ValueId both = c.add("Concat", {first, second}, {{"axis", int64_t{1}}});
  const ValueId all = c.add("Gather", {both, c.integers(places)}, {{"axis", int64_t{1}}});
  const int64_t rows = c.shape_of(first)[0];
  return c.add("Where", {c.constant(std::move(same)), c.scalar(c.dtype_of(first), 0),
                         c.reshape(all, {rows, classes, classes})});
}

// The quadratic form p' Q p that the probabilities make least, and its diagonal.
struct Form {
  ValueId matrix = kNoValue;    // [N, classes, classes]
  ValueId diagonal = kNoValue;  // [N, classes]
};

Form quadratic_form(ExpandContext& c, ValueId first, int64_t classes) {
  const ValueId of_row = squares(c, first, classes, false);
  const ValueId of_column = squares(c, first, classes, true);
  Tensor unit(c.dtype_of(first), {classes, classes});
  for (int64_t i = 0; i < classes; ++i) unit.set(i * classes + i, 1);
  const ValueId sums = c.reduce("ReduceSumSquare", of_column, {2});
  const ValueId matrix = c.binary("Sub", c.binary("Mul", sums, c.constant(std::move(unit))),
                                  c.binary("Mul", of_row, of_column));
  return {.matrix = matrix, .diagonal = c.reshape(sums, {c.shape_of(first)[0], classes})};
}

}  // namespace

Result<ValueId> coupled_probabilities(ExpandContext& c, ValueId first, int64_t classes) {
  HONE_RETURN_IF_ERROR(c.status());
  const DType type = c.dtype_of(first);
  const int64_t rows = c.shape_of(first)[0];
  if (rows == 0) return c.constant(Tensor(type, {0, classes}));
  const auto count = static_cast<double>(classes);
  const Form form = quadratic_form(c, first, classes);

  LoopBuilder loop(c, kMostSweeps * classes);
  ExpandContext& body = loop.body();
  const ValueId p = loop.carry(uniform(c, type, {rows, classes}, 1 / count));
  const ValueId moved_before = loop.carry(uniform(c, type, {rows, 1}, 1));
  const ValueId q = loop.capture(form.matrix), diagonal = loop.capture(form.diagonal);
  // The class of this step; each sweep begins with the first one.
  const ValueId at = body.binary("Mod", loop.turn(), count);
  const ValueId mark = body.cast(body.binary("Equal", numbers_from_0(body, classes), at), type);
  const auto marked = [&](ValueId x) {
    return body.reduce("ReduceSum", body.binary("Mul", x, mark), {1});
  };
  const ValueId qp = body.reduce(
      "ReduceSum", body.binary("Mul", q, body.reshape(p, {rows, 1, classes})), {2}, false);
  const ValueId pqp = body.reduce("ReduceSum", body.binary("Mul", p, qp), {1});
  // The beginning of a sweep decides whether a row goes on. A NaN is no distance: such rows end.
  const ValueId error = body.add("Abs", {body.binary("Sub", qp, pqp)});
  const ValueId far = body.cast(body.binary("GreaterOrEqual", error, kTolerance / count), type);
  const ValueId moves = body.add(
      "Where", {body.binary("Equal", at, 0.0), body.reduce("ReduceMax", far, {1}), moved_before});
  const ValueId step = body.binary("Div", body.binary("Sub", pqp, marked(qp)), marked(diagonal));
  const ValueId stepped = body.binary("Div", body.binary("Add", p, body.binary("Mul", step, mark)),
                                      body.binary("Add", step, 1.0));
  const ValueId next = body.add("Where", {body.binary("Greater", moves, 0.0), stepped, p});
  const ValueId go_on = body.binary("Greater", body.reduce("ReduceMax", moves, {0, 1}, false), 0.0);
  // Expected are some sweeps: measured are 3 to 9 of them.
  HONE_ASSIGN_OR_RETURN(const LoopResults made,
                        loop.finish({.expected_turns = 6 * count}, c.scalar(DType::kBool, 1), go_on,
                                    {next, moves}, {}));
  return made.carried[0];
}

}  // namespace hone::graph
