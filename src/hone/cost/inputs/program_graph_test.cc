#include "hone/cost/inputs/program_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "hone/compute/dag_testing.h"
#include "hone/cost/inputs/model_inputs.h"
#include "hone/target/target.h"

namespace hone::cost {
namespace {

namespace dags = compute::testing;

const target::Target& machine() {
  static const target::Target target = target::find("x86-64-avx512").value();
  return target;
}

ProgramGraph graph_of(const space::Candidate& candidate) {
  return build_graph(analysis::build_nests(candidate.state, candidate.bounds), candidate.state,
                     candidate.bounds);
}

space::Candidate scheduled(const compute::Dag& dag, const char* steps = "") {
  return space::make_candidate(dag, *schedule::parse_steps(steps)).value();
}

// The arrays of the plain form.
struct Plain {
  size_t width = graph_node_names().size(), size = static_cast<size_t>(kMaxGraphNodes);
  std::vector<float> nodes, edges, mask;
  explicit Plain(const ProgramGraph& graph) : nodes(size * width), edges(size * size), mask(size) {
    write_graph(graph, nodes.data(), edges.data(), mask.data());
  }
  [[nodiscard]] float value(size_t node, std::string_view name) const {
    const std::vector<std::string>& names = graph_node_names();
    const auto place = std::find(names.begin(), names.end(), name);
    EXPECT_NE(place, names.end()) << name;
    return nodes[node * width + static_cast<size_t>(place - names.begin())];
  }
  [[nodiscard]] double count(size_t node, std::string_view name) const {
    return std::exp2(value(node, name)) - 1;
  }
  [[nodiscard]] float edge(size_t a, size_t b) const { return edges[a * size + b]; }
};

// for m (4): for n (8): for k (6): out[m, n] += data[m, k] * weight[k, n]
TEST(program_graph, a_product_is_a_chain_of_loops_with_their_intervals) {
  const ProgramGraph graph = graph_of(scheduled(dags::gemm(4, 8, 6)));
  ASSERT_EQ(graph.loops.size(), 3U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(graph.loops[static_cast<size_t>(i)].parent, i - 1);
  const Plain plain(graph);
  const double degree[] = {2, 4, 2, 4, 2, 3, 2};  // of root, m, its interval, n, ... with itself
  const std::set<std::pair<size_t, size_t>> joined = {{0, 1}, {1, 2}, {1, 3},
                                                      {3, 4}, {3, 5}, {5, 6}};
  for (size_t a = 0; a < plain.size; ++a) {
    EXPECT_EQ(plain.mask[a], a < 7 ? 1 : 0);
    for (size_t b = 0; b < plain.size; ++b) {
      const bool there = (a == b && a < 7) || joined.contains({std::min(a, b), std::max(a, b)});
      EXPECT_FLOAT_EQ(plain.edge(a, b),
                      there ? static_cast<float>(1 / std::sqrt(degree[a] * degree[b])) : 0)
          << a << " " << b;
    }
  }
}

TEST(program_graph, nodes_say_what_their_loops_are_and_touch) {
  const Plain plain(graph_of(
      scheduled(dags::gemm(4, 8, 6),
                "parallel(matmul, m)\nreorder(matmul, [m, k, n])\nvectorize(matmul, n)\n")));
  EXPECT_EQ(plain.value(0, "root"), 1);
  EXPECT_NEAR(plain.count(0, "fma"), 4 * 8 * 6, 1e-3);
  EXPECT_NEAR(plain.count(0, "bytes"), 4 * (24 + 48 + 32), 1e-3);
  // The node of the loop over m, and its interval.
  EXPECT_EQ(plain.value(1, "for"), 1);
  EXPECT_EQ(plain.value(1, "parallel"), 1);
  EXPECT_EQ(plain.value(1, "bytes"), 0);
  EXPECT_EQ(plain.value(2, "interval"), 1);
  for (const size_t node : {size_t{1}, size_t{2}}) {
    EXPECT_NEAR(plain.count(node, "extent"), 4, 1e-5);
    EXPECT_NEAR(plain.count(node, "inside"), 192, 1e-3);
    EXPECT_EQ(plain.value(node, "depth"), 1);
  }
  // Weights first, which the loop does not move: each element is read four times.
  EXPECT_EQ(plain.value(2, "buffer0.constant"), 1);
  EXPECT_EQ(plain.value(2, "buffer0.still"), 1);
  EXPECT_NEAR(plain.count(2, "buffer0.elements"), 48, 1e-3);
  EXPECT_NEAR(plain.count(2, "buffer0.reuse"), 4, 1e-4);
  EXPECT_EQ(plain.value(2, "buffer1.write"), 1);
  EXPECT_NEAR(plain.count(2, "buffer1.bytes"), 128, 1e-3);
  EXPECT_NEAR(plain.count(2, "buffer1.stride"), 8, 1e-4);
  EXPECT_NEAR(plain.count(2, "buffer2.stride"), 6, 1e-4);
  EXPECT_EQ(plain.value(2, "buffer3.read"), 0);
  // While the innermost loop runs, 8 of the weights, 8 results and one element of the data.
  EXPECT_EQ(plain.value(3, "reduce"), 1);
  EXPECT_EQ(plain.value(6, "vector"), 1);
  EXPECT_EQ(plain.value(6, "spatial"), 1);
  EXPECT_EQ(plain.value(6, "innermost"), 1);
  EXPECT_NEAR(plain.count(6, "outside"), 24, 1e-3);
  EXPECT_NEAR(plain.count(6, "bytes"), 4 * (8 + 8 + 1), 1e-3);
  EXPECT_NEAR(plain.count(6, "buffer0.stride"), 1, 1e-5);
}

// The copy of the sums and the sums themselves run in the loop over blocks of rows.
TEST(program_graph, statements_share_the_loops_around_them) {
  const ProgramGraph graph = graph_of(scheduled(
      dags::gemm(8, 4, 6),
      "cache_write(matmul)\nsplit(matmul, m, [2])\ncompute_at(matmul.acc, matmul, m.0)\n"));
  std::vector<int> parents;
  std::vector<int64_t> extents;
  for (const GraphLoop& loop : graph.loops) {
    parents.push_back(loop.parent);
    extents.push_back(loop.loop.extent);
  }
  EXPECT_EQ(parents, (std::vector<int>{-1, 0, 1, 2, 0, 4}));
  EXPECT_EQ(extents, (std::vector<int64_t>{4, 2, 4, 6, 2, 4}));
  EXPECT_EQ(graph.loops[0].statements.size(), 2U);
  EXPECT_EQ(graph.loops[3].statements.size(), 1U);
}

TEST(program_graph, a_body_has_the_loops_of_its_statements) {
  const ProgramGraph graph = graph_of(scheduled(dags::running_sum(3, 5)));
  ASSERT_EQ(graph.loops.size(), 2U);
  EXPECT_FALSE(graph.loops[0].body);
  EXPECT_TRUE(graph.loops[1].body);
  EXPECT_EQ(graph.loops[1].statements.size(), 2U);
}

std::vector<compute::Dag> task_families() {
  return {dags::conv2d({.h = 28, .w = 28, .ic = 64, .oc = 64}),
          dags::conv2d({.h = 17, .w = 17, .ic = 32, .oc = 32, .stride = 2, .residual = true}),
          dags::grouped_conv2d(8, 8, 4, 8, 4, 1),
          dags::depthwise(14, 14, 32, 1),
          dags::separable(9, 9, 16, 24),
          dags::gemm(512, 512, 512),
          dags::gemm(7, 1, 4001),
          dags::few_columns(33, 1, 16381, true),
          dags::product_of_two(3, 20, 24, 32),
          dags::max_pool(16, 16, 32),
          dags::global_pool(7, 7, 64),
          dags::softmax(3, 40, 1),
          dags::centred_rows(1, 1 << 17),
          dags::normalized_rows(40, 300),
          dags::arg_max(3, 50, 16),
          dags::attention(2, 64, 128, 16),
          dags::attention(2, 64, 1030, 16, 0),
          dags::running_sum(1, 400'000),
          dags::running_sum(2, 70, 64),
          dags::gather_rows(40, 64, 1000),
          dags::add_rows(40, 64, 10)};
}

// Every sketch of every kind of task has a graph with statements, which fits both forms.
TEST(program_graph, every_kind_of_task_has_one) {
  for (const compute::Dag& dag : task_families()) {
    SCOPED_TRACE(compute::describe(dag));
    const space::Space space = space::Space::create(dag, machine()).value();
    Rng rng(1);
    std::vector<space::Point> points;
    for (int s = 0; s < space.num_sketches(); ++s) points.push_back(space.default_point(s));
    for (int i = 0; i < 6; ++i) points.push_back(space.sample(rng));
    for (const space::Point& point : points) {
      const Result<space::Candidate> candidate = space.instantiate(point);
      if (!candidate.ok()) continue;
      const ProgramGraph graph = graph_of(*candidate);
      ASSERT_FALSE(graph.nests.empty());
      ASSERT_FALSE(graph.loops.empty());
      EXPECT_LE(1 + 2 * std::ssize(graph.loops), kMaxGraphNodes);
      for (const GraphLoop& loop : graph.loops) EXPECT_FALSE(loop.statements.empty());
      const Result<std::vector<int>> places = map_to_template(graph, candidate->state);
      ASSERT_TRUE(places.ok()) << places.status().message();
      EXPECT_EQ(std::set<int>(places->begin(), places->end()).size(), graph.loops.size());
      for (const int place : *places) EXPECT_TRUE(place >= 0 && place < template_loops());
      const Result<ModelInputs> inputs = model_inputs({&*candidate, &machine(), 2, 1});
      ASSERT_TRUE(inputs.ok()) << inputs.status().message();
      const auto nodes = [&](Input input) {
        const std::vector<float>& mask = inputs->values[static_cast<size_t>(input)];
        return std::count(mask.begin(), mask.end(), 1.0F);
      };
      EXPECT_EQ(nodes(Input::kGraphMask), 1 + 2 * std::ssize(graph.loops));
      EXPECT_EQ(nodes(Input::kTemplateMask), 1 + std::ssize(graph.loops));
    }
  }
}

// Convolutions whose tails and windows make the most loops, with and without a residual.
std::vector<compute::Dag> convolutions() {
  std::vector<compute::Dag> all = {dags::inverted_residual(28, 28, 16, 96, 24),
                                   dags::depthwise(56, 56, 96, 2)};
  for (const bool residual : {false, true}) {
    for (const int64_t side : {7, 14, 28, 60}) {
      for (const int64_t kernel : {1, 3, 7}) {
        all.push_back(dags::conv2d({.h = side,
                                    .w = side,
                                    .ic = 64,
                                    .oc = 128,
                                    .kernel = kernel,
                                    .pad = kernel / 2,
                                    .residual = residual}));
      }
    }
  }
  return all;
}

// Many schedules, as a search draws them, whatever the vectors and caches of the device.
TEST(program_graph, the_template_has_room_for_what_a_search_draws) {
  std::vector<compute::Dag> all = task_families();
  for (compute::Dag& dag : convolutions()) all.push_back(std::move(dag));
  for (const char* device : {"x86-64-avx2", "x86-64-avx512", "aarch64-neon"}) {
    const target::Target target = target::find(device).value();
    for (const compute::Dag& dag : all) {
      const space::Space space = space::Space::create(dag, target).value();
      Rng rng(3);
      for (int i = 0; i < 100; ++i) {
        const Result<space::Candidate> candidate = space.instantiate(space.sample(rng));
        if (!candidate.ok()) continue;
        const Status mapped = map_to_template(graph_of(*candidate), candidate->state).status();
        ASSERT_TRUE(mapped.ok()) << device << ": " << compute::describe(dag) << ": "
                                 << mapped.message();
      }
    }
  }
}

// Values of points one after the other, of so many stages.
compute::Dag chain(int stages) {
  compute::DagBuilder builder;
  for (int64_t i = 0; i < stages; ++i) {
    const auto from = builder.input("data", {10 + i}), to = builder.output("out", {10 + i});
    const auto axis = compute::make_axis("i", 10 + i);
    builder.pointwise("exp", {axis}, compute::View(to),
                      ir::make(ir::Op::kExp, {ir::load(from, {ir::variable(axis.var)})}));
  }
  return std::move(builder).build().value();
}

TEST(program_graph, of_a_larger_one_the_lightest_statements_are_left_out) {
  const Plain plain(graph_of(scheduled(chain(60))));
  EXPECT_EQ(plain.mask, std::vector<float>(plain.size, 1));
  EXPECT_NEAR(plain.count(0, "statements"), 60, 1e-3);
  EXPECT_NEAR(plain.count(1, "extent"), 10 + 12, 1e-4);  // of 60 loops 48 are kept
  EXPECT_NEAR(plain.count(95, "extent"), 10 + 59, 1e-4);
}

TEST(program_graph, one_larger_than_the_template_is_an_error) {
  const space::Candidate many = scheduled(chain(7));
  EXPECT_EQ(model_inputs({&many, &machine(), 2, 1}).status().message(),
            "the program's graph is larger than the template of graphs: exp.6 is one more stage of "
            "the role root, expected at most 6; use a net of graphs as they are (super=0)");
  const space::Candidate deep =
      scheduled(dags::gemm(64, 512, 4096), "split(matmul, k, [2, 2, 2, 2, 2, 2, 2, 2])\n");
  EXPECT_EQ(model_inputs({&deep, &machine(), 2, 1}).status().message(),
            "the program's graph is larger than the template of graphs: matmul has 9 loops over "
            "terms or of a body, expected at most 4; use a net of graphs as they are (super=0)");
}

TEST(program_graph, loops_of_a_role_have_the_same_places_in_every_program) {
  const auto places = [](const compute::Dag& dag) {
    const space::Candidate candidate = scheduled(dag);
    return map_to_template(graph_of(candidate), candidate.state).value();
  };
  // m and n of a product lie where oh, ow and oc of a convolution's sum do, from the innermost on.
  const std::vector<int> product = places(dags::gemm(4, 8, 6));
  const std::vector<int> sum = places(dags::conv2d({.h = 5, .w = 6, .ic = 4, .oc = 8}));
  EXPECT_EQ(product, (std::vector<int>{1, 0, 6}));
  EXPECT_EQ(std::vector<int>(sum.begin(), sum.begin() + 6), (std::vector<int>{2, 1, 0, 8, 7, 6}));
}

TEST(program_graph, edges_of_the_template_are_symmetric_and_none_is_alone) {
  const std::vector<float>& edges = template_edges();
  const auto nodes = static_cast<size_t>(1 + 2 * template_loops());
  ASSERT_EQ(edges.size(), nodes * nodes);
  for (size_t a = 0; a < nodes; ++a) {
    int joined = 0;
    for (size_t b = 0; b < nodes; ++b) {
      ASSERT_EQ(edges[a * nodes + b], edges[b * nodes + a]);
      joined += edges[a * nodes + b] > 0 ? 1 : 0;
    }
    EXPECT_GT(joined, 1);
    EXPECT_FLOAT_EQ(edges[a * nodes + a], 1 / static_cast<float>(joined));
  }
}

}  // namespace
}  // namespace hone::cost
