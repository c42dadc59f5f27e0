#include "hone/cost/inputs/model_inputs.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "hone/analysis/cpu_measure.h"
#include "hone/compute/dag_testing.h"
#include "hone/cost/candidate_features.h"
#include "hone/cost/inputs/operator_tag.h"
#include "hone/target/target.h"

namespace hone::cost {
namespace {

namespace dags = compute::testing;

const target::Target& machine() {
  static const target::Target target = target::find("x86-64-avx512").value();
  return target;
}

std::vector<float> values(const ModelInputs& inputs, Input input) {
  return inputs.values[static_cast<size_t>(input)];
}

float value(const ModelInputs& inputs, Input input, std::string_view name, int64_t row = 0) {
  const std::vector<std::string>& names = input_names(input);
  const auto at = std::find(names.begin(), names.end(), name) - names.begin();
  EXPECT_LT(at, std::ssize(names)) << name;
  return values(inputs, input)[static_cast<size_t>(row * std::ssize(names) + at)];
}

ModelInputs inputs_of(const space::Candidate& candidate, uint64_t task = 1) {
  return model_inputs({&candidate, &machine(), 2, task}).value();
}

std::set<std::string> tags_of(const ModelInputs& inputs) {
  std::set<std::string> found;
  for (int64_t row = 0; row < kMaxStatements; ++row) {
    for (const std::string_view name : tag_names()) {
      if (value(inputs, Input::kTags, name, row) != 0) found.emplace(name);
    }
  }
  return found;
}

// Returns the tags for the default point of the sketch whose algorithm has that name.
std::set<std::string> tags_in_space(const compute::Dag& dag, std::string_view algorithm) {
  const space::Space space = space::Space::create(dag, machine()).value();
  for (int sketch = 0; sketch < space.num_sketches(); ++sketch) {
    if (space.algorithm(sketch) != algorithm) continue;
    return tags_of(inputs_of(space.instantiate(space.default_point(sketch)).value()));
  }
  ADD_FAILURE() << "no sketch " << algorithm;
  return {};
}

TEST(model_inputs, every_number_has_a_name) {
  ASSERT_EQ(input_shapes().size(), kNumInputs);
  for (size_t i = 0; i < kNumInputs; ++i) {
    const InputShape& shape = input_shapes()[i];
    const auto input = static_cast<Input>(i);
    EXPECT_EQ(find_input(shape.name), input);
    const bool is_mask = shape.name.ends_with("mask");
    EXPECT_TRUE(is_mask || shape.dims.back() == std::ssize(input_names(input))) << shape.name;
    const std::set<std::string> names(input_names(input).begin(), input_names(input).end());
    EXPECT_EQ(names.size(), input_names(input).size()) << shape.name;
  }
  EXPECT_FALSE(find_input("nothing"));
}

TEST(model_inputs, samples_are_finite_and_the_same_again) {
  for (const compute::Dag& dag : {dags::conv2d({.h = 14, .w = 14, .ic = 32, .oc = 32}),
                                  dags::gemm(64, 48, 32), dags::depthwise(14, 14, 32, 1)}) {
    const space::Space space = space::Space::create(dag, machine()).value();
    InputWriter writer(InputSet().set());
    Rng rng(1);
    int made = 0;
    for (int i = 0; i < 50; ++i) {
      const Result<space::Candidate> candidate = space.instantiate(space.sample(rng));
      if (!candidate.ok()) continue;
      ++made;
      ModelInputs once = inputs_of(*candidate), again = once;
      std::array<float*, kNumInputs> rows;
      for (size_t k = 0; k < kNumInputs; ++k) {
        for (float& x : again.values[k]) x = NAN;  // everything is written
        rows[k] = again.values[k].data();
      }
      ASSERT_TRUE(writer.write({&*candidate, &machine(), 2, 1}, rows).ok());
      EXPECT_GT(writer.analytic_seconds(), 0);
      for (size_t k = 0; k < kNumInputs; ++k) EXPECT_EQ(once.values[k], again.values[k]);
    }
    EXPECT_GT(made, 10);
  }
}

// The two inputs together are what trees read.
TEST(model_inputs, the_measure_and_decisions_are_what_combined_reads) {
  const space::Space space =
      space::Space::create(dags::conv2d({.h = 14, .w = 14, .ic = 32, .oc = 32}), machine()).value();
  const space::Candidate candidate = space.instantiate(space.default_point()).value();
  const Query query = {&candidate, &machine(), 2, 1};
  const ModelInputs inputs = model_inputs(query).value();
  std::vector<float> both = values(inputs, Input::kMeasure);
  const std::vector<float> decisions = values(inputs, Input::kDecisions);
  both.insert(both.end(), decisions.begin(), decisions.end());
  EXPECT_EQ(both, candidate_features(query, FeatureSet::kCombined).row);
  std::vector<std::string> names = input_names(Input::kMeasure);
  names.insert(names.end(), input_names(Input::kDecisions).begin(),
               input_names(Input::kDecisions).end());
  EXPECT_EQ(names, candidate_feature_names(FeatureSet::kCombined));
  const target::Cpu& cpu = machine().cpu();
  const double seconds =
      analysis::measure_cpu(candidate.state, candidate.bounds, cpu, 2).seconds(cpu, 2);
  EXPECT_FLOAT_EQ(value(inputs, Input::kAnalytic, "log_seconds"),
                  static_cast<float>(std::log(seconds)));

  InputWriter alone(InputSet().set(static_cast<size_t>(Input::kDecisions)));
  std::vector<float> row(decisions.size(), NAN);
  std::array<float*, kNumInputs> rows{};
  rows[static_cast<size_t>(Input::kDecisions)] = row.data();
  ASSERT_TRUE(alone.write(query, rows).ok());
  EXPECT_EQ(row, decisions);
}

TEST(model_inputs, a_device_has_the_head_of_its_name_or_the_mean_of_all) {
  const space::Candidate candidate = space::make_candidate(dags::gemm(8, 8, 8), {}).value();
  const std::string key = target::device_key(machine());
  const auto head = [&](const std::vector<std::string>& heads, int threads) {
    const auto place = static_cast<size_t>(Input::kHead);
    InputWriter writer(InputSet().set(place), heads);
    std::vector<float> row(static_cast<size_t>(kMaxHeads), NAN);
    std::array<float*, kNumInputs> rows{};
    rows[place] = row.data();
    EXPECT_TRUE(writer.write({&candidate, &machine(), threads, 1}, rows).ok());
    return row;
  };
  EXPECT_EQ(head_name(key, 2), key + "/2");
  EXPECT_EQ(head({"other/2", key + "/2"}, 2), (std::vector<float>{0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(head({"other/2", key + "/2"}, 1), (std::vector<float>{0.5, 0.5, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(head({}, 1), std::vector<float>(8, 0));
}

TEST(model_inputs, what_is_not_there_is_zero) {
  const space::Candidate candidate = space::make_candidate(dags::gemm(8, 8, 8), {}).value();
  const ModelInputs inputs = inputs_of(candidate);
  EXPECT_EQ(values(inputs, Input::kMask)[0], 1);
  EXPECT_EQ(values(inputs, Input::kStepsMask)[0], 1);  // even without a step
  for (const auto& [input, mask] :
       {std::pair(Input::kStatements, Input::kMask), std::pair(Input::kTags, Input::kMask),
        std::pair(Input::kSteps, Input::kStepsMask)}) {
    const int64_t width = std::ssize(input_names(input));
    for (size_t row = 1; row < values(inputs, mask).size(); ++row) {
      EXPECT_EQ(values(inputs, mask)[row], 0);
      for (int64_t i = 0; i < width; ++i)
        ASSERT_EQ(values(inputs, input)[row * static_cast<size_t>(width) + static_cast<size_t>(i)],
                  0);
    }
  }
}

TEST(model_inputs, the_heaviest_statements_stay_in_the_order_of_the_program) {
  compute::DagBuilder builder;
  std::vector<int64_t> extents;
  for (int64_t i = 0; i < 16; ++i) extents.push_back(10 + (i * 7) % 16);
  for (const int64_t extent : extents) {
    const auto from = builder.input("data", {extent}), to = builder.output("out", {extent});
    const auto axis = compute::make_axis("i", extent);
    builder.pointwise("exp", {axis}, compute::View(to),
                      ir::make(ir::Op::kExp, {ir::load(from, {ir::variable(axis.var)})}));
  }
  const compute::Dag dag = std::move(builder).build().value();
  const space::Candidate candidate = space::make_candidate(dag, {}).value();
  const ModelInputs inputs = model_inputs({&candidate, &machine(), 2, 1},
                                          InputSet().set(static_cast<size_t>(Input::kStatements)))
                                 .value();
  std::vector<float> expected, found;
  for (const int64_t extent : extents) {
    if (extent >= 14) expected.push_back(std::log2(1.0F + static_cast<float>(extent)));
  }
  for (int64_t row = 0; row < kMaxStatements; ++row)
    found.push_back(value(inputs, Input::kStatements, "outer.iterations", row));
  EXPECT_EQ(found, expected);
}

TEST(operator_tag, of_the_usual_classes) {
  const compute::Dag conv = dags::conv2d({.h = 14, .w = 14, .ic = 32, .oc = 32});
  EXPECT_EQ(tags_in_space(conv, "direct"), (std::set<std::string>{"conv", "max"}));
  EXPECT_EQ(tags_in_space(conv, "winograd_4"), (std::set<std::string>{"winograd", "max"}));
  EXPECT_TRUE(tags_in_space(dags::gemm(64, 64, 64), "direct").contains("dense"));
  EXPECT_TRUE(tags_in_space(dags::depthwise(14, 14, 32, 1), "direct").contains("depthwise"));
  EXPECT_TRUE(tags_in_space(dags::softmax(16, 64, 1), "direct").contains("softmax"));
}

TEST(model_inputs, every_kind_of_step_is_a_token) {
  const compute::Dag dag = dags::gemm(32, 32, 32);
  space::Candidate candidate = space::make_candidate(dag, {}).value();
  const std::string stage = dag.stages[0].name;
  candidate.steps = {schedule::Split{stage, "m", {4, 2}},
                     schedule::Fuse{stage, {"m.0", "n.0"}},
                     schedule::Reorder{stage, {"m.1", "k"}},
                     schedule::ComputeAt{stage, stage, "m"},
                     schedule::StoreAt{stage, stage, "m"},
                     schedule::Fold{stage, "m", 2},
                     schedule::Inline{"gone"},
                     schedule::CacheRead{"data", stage},
                     schedule::Im2col{stage, "data"},
                     schedule::CacheWrite{stage},
                     schedule::SetScope{stage, ir::Scope::kRegister},
                     schedule::Layout{stage, {"n/8", "k", "n%8"}},
                     schedule::RFactor{stage, "k", 4},
                     schedule::OnlineSoftmax{stage, 4},
                     schedule::Winograd{stage, 4},
                     schedule::Strassen{stage, "m", 16},
                     schedule::Narrow{stage},
                     schedule::Sink{stage, "m"},
                     schedule::Vectorize{stage, "n"},
                     schedule::Unroll{stage, "m"},
                     schedule::Parallel{stage, "m"},
                     schedule::Prefetch{stage, "data", "m", 8},
                     schedule::Bind{stage, "m"},
                     schedule::Pipeline{stage, 2},
                     schedule::MatrixProduct{stage, {"m"}, {"n"}, 16},
                     schedule::Tensorize{stage, "m", "n", "k"},
                     schedule::Lift{stage, {"m"}, 4},
                     schedule::SplitUpdates{stage},
                     schedule::BlockBody{stage, 64}};
  ASSERT_EQ(candidate.steps.size(), std::variant_size_v<schedule::Step>);
  const ModelInputs inputs = inputs_of(candidate);
  for (size_t i = 0; i < candidate.steps.size(); ++i) {
    const std::string text = schedule::to_string(candidate.steps[i]);
    std::string kind = "kind." + text.substr(0, text.find('('));
    if (kind == "kind.narrow") kind = "kind.scope";            // how a result is kept, too
    if (kind == "kind.im2col") kind = "kind.cache_read";       // a copy, too
    if (kind == "kind.online_softmax") kind = "kind.rfactor";  // sums in parts, too
    if (kind == "kind.strassen") kind = "kind.winograd";       // fewer products, too
    if (kind == "kind.sink") kind = "kind.reorder";            // an order of loops, too
    if (kind == "kind.bind") kind = "kind.parallel";           // who runs a loop, too
    if (kind == "kind.matrix_product") kind = "kind.cache_read";
    if (kind == "kind.tensorize" || kind == "kind.lift") kind = "kind.vectorize";
    if (kind == "kind.split_updates") kind = "kind.rfactor";
    if (kind == "kind.block_body") kind = "kind.parallel";
    if (kind == "kind.pipeline") kind = "kind.fold";  // a ring, too
    EXPECT_EQ(value(inputs, Input::kSteps, kind, static_cast<int64_t>(i)), 1) << text;
    EXPECT_EQ(values(inputs, Input::kStepsMask)[i], 1);
  }
  EXPECT_EQ(values(inputs, Input::kStepsMask)[candidate.steps.size()], 0);
  EXPECT_FLOAT_EQ(value(inputs, Input::kSteps, "argument7", 0), std::log2(3.0F));
  EXPECT_FLOAT_EQ(value(inputs, Input::kSteps, "argument8", 0), std::log2(5.0F));
}

TEST(model_inputs, loops_unrolled_one_after_the_other_are_one_token) {
  const compute::Dag dag = dags::gemm(4, 8, 32);
  space::Candidate candidate = space::make_candidate(dag, {}).value();
  const std::string stage = dag.stages[0].name;
  candidate.steps = {schedule::Unroll{stage, "m"}, schedule::Unroll{stage, "n"},
                     schedule::Vectorize{stage, "k"}};
  const ModelInputs inputs = inputs_of(candidate);
  EXPECT_EQ(value(inputs, Input::kSteps, "kind.unroll", 0), 1);
  EXPECT_FLOAT_EQ(value(inputs, Input::kSteps, "argument0", 0), std::log2(3.0F));   // two
  EXPECT_FLOAT_EQ(value(inputs, Input::kSteps, "argument1", 0), std::log2(33.0F));  // 4 * 8
  EXPECT_EQ(value(inputs, Input::kSteps, "kind.vectorize", 1), 1);
  EXPECT_EQ(values(inputs, Input::kStepsMask)[2], 0);
}

TEST(model_inputs, a_task_reads_the_same_whatever_the_schedule) {
  const compute::Dag dag = dags::conv2d({.h = 14, .w = 14, .ic = 32, .oc = 32});
  const space::Space space = space::Space::create(dag, machine()).value();
  Rng rng(1);
  std::set<std::vector<float>> tasks, devices, statements;
  for (int i = 0; i < 20; ++i) {
    const Result<space::Candidate> candidate = space.instantiate(space.sample(rng));
    if (!candidate.ok()) continue;
    const ModelInputs inputs = inputs_of(*candidate);
    tasks.insert(values(inputs, Input::kTask));
    devices.insert(values(inputs, Input::kDevice));
    statements.insert(values(inputs, Input::kStatements));
  }
  EXPECT_EQ(tasks.size(), 1u);
  EXPECT_EQ(devices.size(), 1u);
  EXPECT_GT(statements.size(), 5u);
}

}  // namespace
}  // namespace hone::cost
