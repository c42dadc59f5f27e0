// The representation carries what later issues need: Winograd, online softmax, rolling buffers,
// concatenation in place, transposed convolution by phases. Odd shapes throughout.
#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using compute::DagBuilder;
using compute::make_axis;
using compute::View;
using compute::testing::inverted_residual;
using ir::constant;
using ir::Expr;
using ir::load;

ir::BufferPtr matrix(std::string name, std::vector<int64_t> shape, std::vector<float> values) {
  auto buffer = std::make_shared<ir::Buffer>();
  buffer->name = std::move(name);
  buffer->shape = std::move(shape);
  buffer->values = std::move(values);
  return buffer;
}

Expr within(const Expr& low_index, int64_t extent) {
  return ir::logical_and(ir::less_equal(constant(0), low_index),
                         ir::less(low_index, constant(extent)));
}

// Winograd F(4x4, 3x3), Lavin and Gray 2016: Y = A' [ (G g G') . (B' d B) ] A.
compute::Dag winograd(int64_t h, int64_t w, int64_t ic, int64_t oc) {
  const auto bt =
      matrix("BT", {6, 6}, {4, 0,  -5, 0, 1, 0, 0, -4, -4, 1,  1, 0, 0, 4, -4, -1, 1, 0,
                            0, -2, -1, 2, 1, 0, 0, 2,  -1, -2, 1, 0, 0, 4, 0,  -5, 0, 1});
  const float s = 1.0F / 6, q = 1.0F / 24, t = 1.0F / 12;
  const auto g =
      matrix("G", {6, 3}, {0.25F, 0, 0, -s, -s, -s, -s, s, -s, q, t, s, q, -t, s, 0, 0, 1});
  const auto at = matrix(
      "AT", {4, 6}, {1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0, 0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1});
  DagBuilder b;
  const auto data = b.input("data", {h, w, ic}), weight = b.constant("weight", {oc, ic, 3, 3});
  const auto out = b.output("out", {h, w, oc});
  const int64_t th = (h + 3) / 4, tw = (w + 3) / 4;
  const auto u = b.intermediate("u", {6, 6, ic, oc}), v = b.intermediate("v", {6, 6, th, tw, ic});
  const auto m = b.intermediate("m", {6, 6, th, tw, oc}),
             y = b.intermediate("y", {th, 4, tw, 4, oc});
  const auto six = [](const char* name) { return make_axis(name, 6); };
  {
    const std::vector<compute::Axis> a = {six("xi"), six("nu"), make_axis("ic", ic),
                                          make_axis("oc", oc)};
    const std::vector<compute::Axis> r = {make_axis("r", 3), make_axis("s", 3)};
    const auto x = compute::variables(a), k = compute::variables(r);
    b.sum("weight_transform", a, r, View(u),
          load(g, {x[0], k[0]}) * load(g, {x[1], k[1]}) * load(weight, {x[3], x[2], k[0], k[1]}));
  }
  {
    const std::vector<compute::Axis> a = {six("xi"), six("nu"), make_axis("th", th),
                                          make_axis("tw", tw), make_axis("ic", ic)};
    const std::vector<compute::Axis> r = {six("r"), six("s")};
    const auto x = compute::variables(a), k = compute::variables(r);
    const Expr row = x[2] * 4 + k[0] - 1, col = x[3] * 4 + k[1] - 1;
    const Expr d = ir::select(ir::logical_and(within(row, h), within(col, w)),
                              load(data, {row, col, x[4]}), ir::constant_float(0));
    b.sum("data_transform", a, r, View(v), load(bt, {x[0], k[0]}) * load(bt, {x[1], k[1]}) * d);
  }
  {
    const std::vector<compute::Axis> a = {six("xi"), six("nu"), make_axis("th", th),
                                          make_axis("tw", tw), make_axis("oc", oc)};
    const std::vector<compute::Axis> r = {make_axis("ic", ic)};
    const auto x = compute::variables(a), k = compute::variables(r);
    b.sum("products", a, r, View(m),
          load(u, {x[0], x[1], k[0], x[4]}) * load(v, {x[0], x[1], x[2], x[3], k[0]}));
  }
  {
    const std::vector<compute::Axis> a = {make_axis("th", th), make_axis("i", 4),
                                          make_axis("tw", tw), make_axis("j", 4),
                                          make_axis("oc", oc)};
    const std::vector<compute::Axis> r = {six("xi"), six("nu")};
    const auto x = compute::variables(a), k = compute::variables(r);
    b.sum(
        "inverse", a, r, View(y),
        load(at, {x[1], k[0]}) * load(at, {x[3], k[1]}) * load(m, {k[0], k[1], x[0], x[2], x[4]}));
  }
  const std::vector<compute::Axis> a = {make_axis("th", th), make_axis("i", 4), make_axis("tw", tw),
                                        make_axis("j", 4), make_axis("oc", oc)};
  const auto x = compute::variables(a);
  const Expr row = x[0] * 4 + x[1], col = x[2] * 4 + x[3];
  compute::Stage relu{"relu",
                      "relu",
                      a,
                      {},
                      ir::logical_and(ir::less(row, constant(h)), ir::less(col, constant(w))),
                      {},
                      {},
                      {}};
  relu.outputs.push_back({out,
                          {row, col, x[4]},
                          ir::max(load(y, x), ir::constant_float(0)),
                          nullptr,
                          nullptr,
                          nullptr});
  b.add(relu);
  return built(std::move(b));
}

TEST(proof, winograd_f43_tiled_with_transforms_inside) {
  const std::string_view steps = R"(
layout(weight_transform, [xi, nu, oc/4, ic, oc%4])
split(relu, tw, [3], peel)
split(relu, oc, [4], pad)
reorder(relu, [th, tw.0, oc.0, tw.1, i, j, oc.1])
fuse(relu, [th, tw.0])
parallel(relu, th@tw.0)
vectorize(relu, oc.1)
compute_at(inverse, relu, oc.0)
compute_at(products, relu, oc.0)
compute_at(data_transform, relu, th@tw.0)
layout(data_transform, [xi, nu, th, ic, tw])
reorder(products, [xi, nu, th, ic, tw, oc])
unroll(products, tw)
vectorize(products, oc)
reorder(inverse, [th, tw, xi, nu, i, j, oc])
vectorize(inverse, oc)
unroll(data_transform, r)
unroll(data_transform, s)
)";
  expect_same(winograd(4, 4, 2, 4), steps, 1e-5);
  expect_same(winograd(7, 13, 3, 6), steps, 1e-5);
  expect_same(winograd(9, 25, 5, 9), steps, 1e-5);
}

// Attention over key tiles: scores, the tile's maximum, weights, sum and product, then a reduction
// over tiles with three components: running maximum, sum and rescaled accumulator.
compute::Dag attention(int64_t queries, int64_t keys, int64_t dim, int64_t tile) {
  DagBuilder b;
  const int64_t tiles = (keys + tile - 1) / tile;
  const auto q = b.input("query", {queries, dim}), k = b.input("key", {keys, dim}),
             v = b.input("value", {keys, dim});
  const auto out = b.output("out", {queries, dim});
  const auto score = b.intermediate("score", {queries, tiles, tile}),
             top = b.intermediate("top", {queries, tiles});
  const auto p = b.intermediate("p", {queries, tiles, tile}),
             psum = b.intermediate("psum", {queries, tiles});
  const auto pv = b.intermediate("pv", {queries, tiles, dim});
  const auto run_max = b.intermediate("run_max", {queries}),
             run_sum = b.intermediate("run_sum", {queries});
  const auto acc = b.intermediate("acc", {queries, dim});
  const auto axis_q = [&] { return make_axis("q", queries); };
  const auto axis_t = [&] { return make_axis("t", tiles); };
  const auto axis_i = [&] { return make_axis("i", tile); };
  const auto axis_d = [&] { return make_axis("d", dim); };
  const Expr lowest = ir::constant_float(-1e30);
  {
    const auto a = std::vector{axis_q(), axis_t(), axis_i()};
    const auto r = std::vector{axis_d()};
    const auto x = compute::variables(a);
    const Expr d = ir::variable(r[0].var), at = x[1] * tile + x[2];
    b.sum("qk", a, r, View(score),
          ir::select(ir::less(at, constant(keys)), load(q, {x[0], d}) * load(k, {at, d}),
                     ir::constant_float(-1e30)));
  }
  {
    const auto a = std::vector{axis_q(), axis_t()};
    const auto r = std::vector{axis_i()};
    const auto x = compute::variables(a);
    b.max("tile_max", a, r, View(top), load(score, {x[0], x[1], ir::variable(r[0].var)}));
  }
  {
    const auto a = std::vector{axis_q(), axis_t(), axis_i()};
    const auto x = compute::variables(a);
    b.pointwise("exp", a, View(p),
                ir::make(ir::Op::kExp, {load(score, x) - load(top, {x[0], x[1]})}));
  }
  {
    const auto a = std::vector{axis_q(), axis_t()};
    const auto r = std::vector{axis_i()};
    const auto x = compute::variables(a);
    b.sum("tile_sum", a, r, View(psum), load(p, {x[0], x[1], ir::variable(r[0].var)}));
  }
  {
    const auto a = std::vector{axis_q(), axis_t(), axis_d()};
    const auto r = std::vector{axis_i()};
    const auto x = compute::variables(a);
    const Expr i = ir::variable(r[0].var), at = x[1] * tile + i;
    b.sum("pv", a, r, View(pv),
          load(p, {x[0], x[1], i}) *
              ir::select(ir::less(at, constant(keys)), load(v, {at, x[2]}), ir::constant_float(0)));
  }
  compute::Stage online{"online", "softmax", {axis_q(), axis_d()}, {axis_t()}, nullptr, {}, {}, {}};
  const Expr xq = ir::variable(online.axes[0].var), xd = ir::variable(online.axes[1].var),
             t = ir::variable(online.reduce[0].var);
  const Expr old_max = load(run_max, {xq}), new_max = ir::max(old_max, load(top, {xq, t}));
  const Expr keep = ir::make(ir::Op::kExp, {old_max - new_max});
  const Expr add = ir::make(ir::Op::kExp, {load(top, {xq, t}) - new_max});
  online.outputs.push_back({run_max, {xq}, new_max, lowest, nullptr, nullptr});
  online.outputs.push_back({run_sum,
                            {xq},
                            load(run_sum, {xq}) * keep + load(psum, {xq, t}) * add,
                            ir::constant_float(0),
                            nullptr,
                            nullptr});
  online.outputs.push_back({acc,
                            {xq, xd},
                            load(acc, {xq, xd}) * keep + load(pv, {xq, t, xd}) * add,
                            ir::constant_float(0),
                            nullptr,
                            nullptr});
  b.add(online);
  const auto a = std::vector{axis_q(), axis_d()};
  const auto x = compute::variables(a);
  b.pointwise("div", a, View(out), load(acc, x) / load(run_sum, {x[0]}));
  return built(std::move(b));
}

TEST(proof, attention_with_online_softmax_over_key_tiles) {
  const std::string_view steps = R"(
split(div, q, [3], peel)
parallel(div, q.0)
compute_at(online, div, q.0)
reorder(online, [t, q, d])
vectorize(online, d)
compute_at(pv, online, t)
compute_at(tile_sum, online, t)
compute_at(exp, online, t)
compute_at(tile_max, online, t)
compute_at(qk, online, t)
vectorize(qk, d)
reorder(pv, [q, t, i, d])
vectorize(pv, d)
)";
  expect_same(attention(7, 13, 5, 4), steps, 1e-5);
  expect_same(attention(6, 8, 4, 8), steps, 1e-5);
  expect_same(attention(1, 1, 3, 4), steps, 1e-5);
}

TEST(proof, expand_depthwise_project_with_a_rolling_buffer) {
  const std::string_view steps = R"(
split(conv2, h, [4], mask)
parallel(conv2, h.0)
compute_at(dw, conv2, h.1)
compute_at(conv1, conv2, h.1)
store_at(conv1, conv2, h.0)
fold(conv1, h, 3)
vectorize(conv1, k)
reorder(dw, [h, w, kh, kw, c])
vectorize(dw, c)
)";
  const compute::Dag dag = inverted_residual(9, 7, 3, 5, 2);
  expect_same(dag, steps);
  expect_same(inverted_residual(4, 1, 1, 3, 2), steps);

  // Each row of a tile is expanded once: 9 rows in tiles of 4 need 5 + 6 + 2 rows, not 3 * 9.
  const Result<ir::Program> program = lower(dag, *parse_steps(steps));
  ASSERT_TRUE(program.ok());
  std::vector<Tensor> args = integer_arguments(*program, 1);
  ir::TouchReport report;
  ASSERT_TRUE(ir::run(*program, args, {}, &report).ok());
  int64_t initial_values = 0;
  for (const ir::Touch& touch : report.by_buffer) {
    if (touch.is_store && touch.buffer->name == "expand") initial_values += touch.count;
  }
  EXPECT_EQ(initial_values, (5 + 6 + 2) * 7 * 5 * (1 + 3));
}

TEST(proof, concatenation_written_in_place_by_its_producers) {
  DagBuilder b;
  const auto left = b.input("data", {5, 3}), right = b.input("other", {5, 7});
  const auto out = b.output("out", {5, 10});
  for (const auto& [from, offset] : {std::pair(left, 0), std::pair(right, 3)}) {
    const auto a = std::vector{make_axis("m", 5), make_axis("n", from->shape[1])};
    b.pointwise("relu", a, View(out, {0, offset}, from->shape),
                ir::max(load(from, compute::variables(a)), ir::constant_float(0)));
  }
  expect_same(built(std::move(b)), R"(
split(relu, n, [2], peel)
vectorize(relu, n.1)
parallel(relu, m)
fuse(relu.1, [m, n])
split(relu.1, m@n, [4])
vectorize(relu.1, m@n.1)
)");
}

// Transposed convolution, stride 2, kernel 3, no padding: output 2*h+1 by phases.
TEST(proof, strided_transposed_convolution_by_phases) {
  const int64_t h = 5, w = 4, ic = 3, oc = 6;
  DagBuilder b;
  const auto data = b.input("data", {h, w, ic}), weight = b.constant("weight", {ic, oc, 3, 3});
  const auto out = b.output("out", {2 * h + 1, 2 * w + 1, oc});
  for (int64_t ph = 0; ph < 2; ++ph) {
    for (int64_t pw = 0; pw < 2; ++pw) {
      // Row 2*y + ph takes taps kh = ph, ph + 2, ... of input rows y - (kh - ph) / 2.
      const auto a =
          std::vector{make_axis("y", h + 1 - ph), make_axis("x", w + 1 - pw), make_axis("oc", oc)};
      const auto r = std::vector{make_axis("th", ph == 0 ? 2 : 1), make_axis("tw", pw == 0 ? 2 : 1),
                                 make_axis("ic", ic)};
      const auto v = compute::variables(a), k = compute::variables(r);
      const Expr row = v[0] - k[0], col = v[1] - k[1];
      const Expr value = ir::select(ir::logical_and(within(row, h), within(col, w)),
                                    load(data, {row, col, k[2]}), ir::constant_float(0)) *
                         load(weight, {k[2], v[2], k[0] * 2 + ph, k[1] * 2 + pw});
      compute::Stage stage{"deconv", "conv_transpose", a, r, nullptr, {}, {}, {}};
      const std::vector<Expr> at = {v[0] * 2 + ph, v[1] * 2 + pw, v[2]};
      stage.outputs.push_back(
          {out, at, load(out, at) + value, ir::constant_float(0), nullptr, nullptr});
      b.add(stage);
    }
  }
  const compute::Dag dag = built(std::move(b));
  // The phases together are the transposed convolution.
  const std::vector<Tensor> got = outputs_of(compute::naive_program(dag), 1);
  const std::vector<Tensor> args = integer_arguments(compute::naive_program(dag), 1);
  ASSERT_EQ(got.size(), 1U);
  for (int64_t y = 0; y < 2 * h + 1; ++y) {
    for (int64_t x = 0; x < 2 * w + 1; ++x) {
      for (int64_t o = 0; o < oc; ++o) {
        double sum = 0;
        for (int64_t i = 0; i < h; ++i) {
          for (int64_t j = 0; j < w; ++j) {
            const int64_t kh = y - 2 * i, kw = x - 2 * j;
            if (kh < 0 || kh > 2 || kw < 0 || kw > 2) continue;
            for (int64_t c = 0; c < ic; ++c) {
              sum +=
                  args[0].at((i * w + j) * ic + c) * args[1].at(((c * oc + o) * 3 + kh) * 3 + kw);
            }
          }
        }
        ASSERT_EQ(got[0].at((y * (2 * w + 1) + x) * oc + o), sum) << y << " " << x << " " << o;
      }
    }
  }
  expect_same(dag, R"(
split(deconv, x, [3], peel)
reorder(deconv, [y, x.0, th, tw, ic, x.1, oc])
parallel(deconv, y)
vectorize(deconv, oc)
fuse(deconv.3, [y, x])
parallel(deconv.3, y@x)
split(deconv.1, oc, [4])
reorder(deconv.1, [y, x, oc.0, th, tw, ic, oc.1])
vectorize(deconv.1, oc.1)
)");
}

}  // namespace
}  // namespace hone::schedule
