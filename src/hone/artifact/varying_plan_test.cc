// The part of a plan about sizes: what is written, and what is refused.
#include <gtest/gtest.h>

#include <cstring>

#include "hone/artifact/artifact_testing.h"
#include "hone/artifact/varying_testing.h"
#include "hone/runtime/plan_sizes.h"

namespace hone::runtime {
namespace {

using artifact::ArtifactSpec;
using artifact::testing::varying_spec;

std::string good_plan() { return artifact::encode_plan(varying_spec("")).value(); }

const PlanHeader& header_of(const std::string& bytes) {
  return *reinterpret_cast<const PlanHeader*>(bytes.data());
}

TEST(varying_plan, holds_what_was_written) {
  const std::string bytes = good_plan();
  ASSERT_EQ(plan_check(bytes.data(), bytes.size()), nullptr);
  const PlanHeader& plan = header_of(bytes);
  ASSERT_EQ(plan.num_symbols, 3U);
  ASSERT_EQ(plan.num_forms, 3U);
  EXPECT_EQ(plan.sizes, 64);
  const PlanSymbol& past = plan_table<PlanSymbol>(plan, plan.symbols)[2];
  EXPECT_STREQ(plan_string(plan, past.name), "past");
  EXPECT_EQ(past.min, 0);
  EXPECT_EQ(past.max, 5);
  const PlanTensor& flat = plan_output(plan, 1);
  EXPECT_STREQ(plan_string(plan, plan_dim(plan, flat, 0).text), "batch*(past + seq)");
  EXPECT_EQ(plan_output(plan, 2).dims, 0U);
  const int64_t symbols[] = {2, 3, 4};
  int64_t forms[3] = {};
  for (int f = 0; f < 3; ++f)
    forms[f] = form_value(plan, plan_table<PlanForm>(plan, plan.forms)[f], symbols);
  EXPECT_EQ(forms[2], 7);
  EXPECT_EQ(dim_value(plan, plan_dim(plan, flat, 0), forms), 14);
}

// A form may have bounds, but not one from which a symbol is found.
TEST(varying_plan, forms_may_have_bounds) {
  const artifact::ArtifactForm last = {.terms = {{1, {1}}}, .offset = -2, .least = 0, .most = 1};
  ArtifactSpec spec = varying_spec("");
  spec.forms.push_back(last);
  spec.outputs.push_back({.name = "last", .shape = {1}, .dims = {{{3, 1}}}});
  const Result<std::string> bytes = artifact::encode_plan(spec);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const PlanHeader& plan = header_of(*bytes);
  EXPECT_STREQ(plan_string(plan, plan_dim(plan, plan_output(plan, 3), 0).text),
               "min(max(seq - 2, 0), 1)");
  for (const auto& [seq, value] : {std::pair<int64_t, int64_t>{1, 0}, {2, 0}, {3, 1}, {4, 1}}) {
    const int64_t symbols[] = {2, seq, 0};
    EXPECT_EQ(form_value(plan, plan_table<PlanForm>(plan, plan.forms)[3], symbols), value);
  }
  spec.inputs[0].dims[0] = {{3, 1}};
  spec.inputs[0].shape[0] = 1;
  EXPECT_EQ(artifact::encode_plan(spec).status().message(),
            "the model cannot be written: a dimension of the plan is out of range");
}

TEST(varying_plan, bounds_are_extents) {
  for (const int64_t bound : {INT64_MIN, INT64_MAX}) {
    ArtifactSpec spec = varying_spec("");
    spec.forms.push_back({.terms = {{1, {1}}}, .least = bound, .most = bound});
    EXPECT_EQ(artifact::encode_plan(spec).status().message(),
              "the model cannot be written: the sizes of the plan are out of range");
  }
}

// Factors behind the three symbols are forms that come before.
TEST(varying_plan, forms_may_be_factors_of_later_ones) {
  const auto plan_of = [](const artifact::ArtifactForm& halves, const artifact::ArtifactForm& sum) {
    ArtifactSpec spec = varying_spec("");
    spec.forms.insert(spec.forms.end(), {halves, sum});
    spec.outputs.push_back({.name = "joined", .shape = {19}, .dims = {{{4, 19}}}});
    return artifact::encode_plan(spec);
  };
  const artifact::ArtifactForm halves = {.terms = {{1, {1}}}, .offset = 1, .divisor = 2};
  const artifact::ArtifactForm sum = {.terms = {{1, {0, 6}}, {2, {6}}}, .offset = 1};
  const Result<std::string> bytes = plan_of(halves, sum);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const PlanHeader& plan = header_of(*bytes);
  EXPECT_STREQ(plan_string(plan, plan_dim(plan, plan_output(plan, 3), 0).text),
               "batch*((seq + 1)/2) + 2*((seq + 1)/2) + 1");
  const int64_t symbols[] = {2, 4, 0};
  EXPECT_EQ(form_value(plan, plan_table<PlanForm>(plan, plan.forms)[4], symbols), 9);

  const std::string wrong = "the model cannot be written: the sizes of the plan are out of range";
  const auto problem = [&](const artifact::ArtifactForm& first,
                           const artifact::ArtifactForm& last) {
    return plan_of(first, last).status().message();
  };
  EXPECT_EQ(problem(halves, {.terms = {{1, {7}}}, .offset = 16}), wrong);  // itself
  EXPECT_EQ(problem({.terms = {{1, {3}}}}, {.terms = {{1, {6}}}}),
            wrong);                                                     // a form of a form of one
  EXPECT_EQ(problem({.terms = {{1, {1}}}, .offset = -2}, sum), wrong);  // may be less than 0
  EXPECT_EQ(problem(halves, {.terms = {{1, {6}}}, .least = 3, .most = 2}), wrong);
  ArtifactSpec spec = varying_spec("");
  spec.forms.push_back({.terms = {{1, {3}}}});
  spec.inputs[0].dims[0] = {{3, artifact::testing::kBatch}};
  EXPECT_EQ(artifact::encode_plan(spec).status().message(),
            "the model cannot be written: a dimension of the plan is out of range");
}

TEST(varying_plan, sizes_in_steps_are_said_by_what_users_give) {
  ArtifactSpec spec;
  spec.symbols = {{"h", 5, 10, 32}, {"w", 5, 10, 32}};
  const auto text = [&](int64_t factor, std::vector<int> symbols) {
    spec.forms.assign(1, {});
    spec.forms[0].terms.push_back({factor, std::move(symbols)});
    return artifact::dim_text(spec, {{0, 100}});
  };
  EXPECT_EQ(text(32, {0}), "h");
  EXPECT_EQ(text(8, {0}), "h/4");
  EXPECT_EQ(text(64, {1}), "2*w");
  EXPECT_EQ(text(21, {0, 1}), "21*h*w/1024");
}

TEST(varying_plan, sums_are_in_brackets_where_others_multiply_them) {
  ArtifactSpec spec;
  spec.symbols = {{"len", 1, 8, 1}, {"wide", 1, 9, 1}};
  spec.forms = {{.terms = {{1, {1}}}, .offset = 1, .divisor = 2},
                {.terms = {{1, {0}}, {1, {2}}}},
                {.terms = {{1, {0}}, {1, {1}}}, .most = 5}};
  const auto text = [&](int form) { return artifact::dim_text(spec, {{form, 13}, {-1, 4}}); };
  EXPECT_EQ(text(1), "(len + ((wide + 1)/2))*4");
  EXPECT_EQ(text(2), "min(len + wide, 5)*4");
}

TEST(varying_plan, of_fixed_shapes_has_no_tables) {
  const std::string bytes = artifact::encode_plan(artifact::testing::filter_spec("")).value();
  const PlanHeader& plan = header_of(bytes);
  EXPECT_EQ(plan.num_symbols + plan.num_forms + plan.num_terms + plan.num_factors + plan.num_parts,
            0U);
  EXPECT_EQ(plan.sizes, -1);
  EXPECT_EQ(plan_input(plan, 0).dims, 0U);
  EXPECT_EQ(plan_table<PlanStep>(plan, plan.steps)[0].limit.form, -1);
  EXPECT_EQ(plan_table<PlanStep>(plan, plan.steps)[0].run.form, -1);
}

TEST(varying_plan, tiles_follow_a_size) {
  PlanStep step = {};
  step.num_tiles = 100;
  step.when.form = -1;
  step.run.form = -1;
  step.limit = {.form = 0, .reserved = 0, .divisor = 8, .multiplier = 6};
  const auto tiles = [&](int64_t size) { return tiles_of(step, &size); };
  EXPECT_EQ(tiles(0), 0);
  EXPECT_EQ(tiles(-3), 0);
  EXPECT_EQ(tiles(1), 6);
  EXPECT_EQ(tiles(8), 6);
  EXPECT_EQ(tiles(9), 12);
  EXPECT_EQ(tiles(1000), 100);
  step.limit.form = -1;
  EXPECT_EQ(tiles(1), 100);
  step.run = {.form = 0, .reserved = 0, .least = 5};
  EXPECT_EQ(tiles(4), 0);
  EXPECT_EQ(tiles(5), 100);
  step.run.form = -1;
  EXPECT_EQ(tiles(4), 100);
}

TEST(varying_plan, steps_run_at_the_sizes_of_an_interval) {
  PlanStep step = {};
  step.num_tiles = 100;
  step.limit = {.form = 0, .reserved = 0, .divisor = 8, .multiplier = 1};
  step.when = {.form = 0, .reserved = 0, .from = 9, .most = 20};
  const auto tiles = [&](int64_t size) { return tiles_of(step, &size); };
  EXPECT_EQ(tiles(8), 0);
  EXPECT_EQ(tiles(9), 2);
  EXPECT_EQ(tiles(20), 3);
  EXPECT_EQ(tiles(21), 0);
  step.limit.form = -1;
  EXPECT_EQ(tiles(8), 0);
  EXPECT_EQ(tiles(9), 100);
}

// Kernels read the sizes where they begin, and nothing writes there but the runtime.
TEST(varying_plan, sizes_that_others_write_are_refused) {
  const auto problem = [](auto change) {
    ArtifactSpec spec = varying_spec("");
    spec.arena_bytes += 128;
    change(spec);
    const Result<std::string> plan = artifact::encode_plan(spec);
    return plan.ok() ? "" : plan.status().message();
  };
  using Spec = ArtifactSpec;
  const std::string argument =
      "the model cannot be written: an argument of the plan overlaps its sizes";
  const std::string loop = "the model cannot be written: a loop of the plan writes over its sizes";
  const auto looped = [&](PlanLoop made) {
    return problem([&](Spec& s) {
      made.end_step = 1;
      s.loops = {{"loop", "", made}};
    });
  };
  EXPECT_EQ(problem([](Spec&) {}), "");
  EXPECT_EQ(problem([](Spec& s) { s.steps[2].arguments[0].bytes = 512; }), "");
  EXPECT_EQ(problem([](Spec& s) { s.steps[2].arguments[0].offset += 8; }), argument);
  EXPECT_EQ(problem([](Spec& s) {
              s.steps[2].arguments[0].bytes = 512;
              s.steps[2].arguments[0].written = true;
            }),
            argument);
  EXPECT_EQ(problem([](Spec& s) {
              s.steps[2].arguments[0] = {ArgumentKind::kArena, 0, 0, 64};
            }),
            "");
  EXPECT_EQ(problem([](Spec& s) {
              s.steps[2].arguments[0] = {ArgumentKind::kArena, 0, 0, 65};
            }),
            argument);
  EXPECT_EQ(looped({.most = 1, .condition = -1, .limit = 64, .turn = 0, .turns = 8}), "");
  EXPECT_EQ(looped({.most = 1, .condition = -1, .limit = -1, .turn = 64, .turns = -1}), loop);
  EXPECT_EQ(looped({.most = 1, .condition = -1, .limit = -1, .turn = -1, .turns = 568}), loop);
}

TEST(varying_plan, that_does_not_fit_is_not_written) {
  const auto problem = [](auto change) {
    ArtifactSpec spec = varying_spec("");
    change(spec);
    const Result<std::string> plan = artifact::encode_plan(spec);
    return plan.ok() ? "" : plan.status().message();
  };
  const std::string sizes = "the model cannot be written: the sizes of the plan are out of range";
  const std::string dims = "the model cannot be written: a dimension of the plan is out of range";
  const std::string tiles =
      "the model cannot be written: the tiles of a step of the plan are out of range";
  const std::string interval =
      "the model cannot be written: the sizes of a step of the plan are out of range";
  using Spec = ArtifactSpec;
  EXPECT_EQ(problem([](Spec&) {}), "");
  EXPECT_EQ(problem([](Spec& s) { s.symbols[0].min = -1; }), sizes);
  EXPECT_EQ(problem([](Spec& s) { s.symbols[0].min = 5; }), sizes);
  EXPECT_EQ(problem([](Spec& s) { s.symbols[0].max = INT64_MAX; }), sizes);
  EXPECT_EQ(problem([](Spec& s) { s.sizes = -1; }), sizes);
  EXPECT_EQ(problem([](Spec& s) { s.sizes = 4; }), sizes);
  EXPECT_EQ(problem([](Spec& s) { s.sizes = 72; }), sizes);  // its end is behind the arena
  EXPECT_EQ(problem([](Spec& s) { s.forms[0].divisor = 0; }), sizes);
  EXPECT_EQ(problem([](Spec& s) { s.forms[0].terms[0].factor = -1; }), sizes);
  EXPECT_EQ(problem([](Spec& s) { s.forms[0].terms[0].symbols[0] = 3; }), sizes);
  EXPECT_EQ(problem([](Spec& s) { s.forms[0].terms[0].symbols[0] = -1; }), sizes);
  EXPECT_EQ(problem([](Spec& s) { s.forms[0].offset = INT64_MIN; }), sizes);
  EXPECT_EQ(problem([](Spec& s) {
              for (ArtifactSpec* spec = &s; spec->forms[0].terms[0].symbols.size() < 40;)
                spec->forms[0].terms[0].symbols.push_back(0);
            }),
            sizes);  // 4 to the power of 40
  EXPECT_EQ(problem([](Spec& s) { s.forms.resize(65); }), sizes);
  EXPECT_EQ(problem([](Spec& s) { s.inputs[0].dims[0][0].most = 3; }), dims);
  EXPECT_EQ(problem([](Spec& s) { s.inputs[0].shape[0] = 3; }), dims);
  EXPECT_EQ(problem([](Spec& s) { s.forms[1].offset = -2; }), dims);  // -1 at the least
  EXPECT_EQ(problem([](Spec& s) { s.inputs[0].dims[0].clear(); }), dims);
  EXPECT_EQ(problem([](Spec& s) { s.outputs[0].actual_shape = 0; }), dims);
  EXPECT_EQ(problem([](Spec& s) { s.inputs[0].dims[0][0].form = 3; }),
            "'x' has form 3, but there are 3");
  EXPECT_EQ(problem([](Spec& s) { s.inputs[0].dims.pop_back(); }),
            "'x' has 2 dimensions, 1 of them with parts");
  EXPECT_EQ(problem([](Spec& s) { s.steps[0].limit.form = 3; }), tiles);
  EXPECT_EQ(problem([](Spec& s) { s.steps[0].limit.form = -2; }), tiles);
  EXPECT_EQ(problem([](Spec& s) { s.steps[0].limit.divisor = 0; }), tiles);
  EXPECT_EQ(problem([](Spec& s) { s.steps[0].limit.multiplier = -1; }), tiles);
  EXPECT_EQ(problem([](Spec& s) { s.steps[0].limit.multiplier = INT64_MAX; }), tiles);
  EXPECT_EQ(problem([](Spec& s) { s.steps[0].when = {0, 1, 4}; }), "");
  EXPECT_EQ(problem([](Spec& s) { s.steps[0].when = {3, 1, 4}; }), interval);
  EXPECT_EQ(problem([](Spec& s) { s.steps[0].when = {-2, 1, 4}; }), interval);
  EXPECT_EQ(problem([](Spec& s) { s.steps[0].when = {0, 5, 4}; }), interval);
  EXPECT_EQ(problem([](Spec& s) { s.steps[0].run.form = 3; }), interval);
  EXPECT_EQ(problem([](Spec& s) { s.steps[0].run.form = -2; }), interval);
  EXPECT_EQ(problem([](Spec& s) {
              s.device = DeviceKind::kCuda;
              s.steps.clear();
            }),
            sizes);
}

// Whatever the bytes are, the check neither crashes nor reads behind the block, and what it accepts
// can be evaluated.
TEST(varying_plan, check_survives_random_damage) {
  constexpr uint64_t kSeed = 11;
  const auto check = [](const void* block, uint64_t bytes) {
    const char* wrong = plan_check(block, bytes);
    if (wrong != nullptr) return wrong;
    const auto& plan = *static_cast<const PlanHeader*>(block);
    int64_t symbols[kMaxSymbols] = {}, forms[kMaxForms] = {};
    for (uint32_t i = 0; i < plan.num_symbols; ++i)
      symbols[i] = plan_table<PlanSymbol>(plan, plan.symbols)[i].max;
    for (uint32_t i = 0; i < plan.num_forms; ++i)
      forms[i] = form_value(plan, plan_table<PlanForm>(plan, plan.forms)[i], symbols);
    for (int i = 0; i < num_tensors(plan); ++i) {
      const PlanTensor& tensor = tensor_at(plan, i);
      for (int d = 0; tensor.dims != 0 && d < tensor.rank; ++d)
        EXPECT_EQ(dim_value(plan, plan_dim(plan, tensor, d), forms),
                  plan_table<int64_t>(plan, tensor.shape)[d]);
    }
    return wrong;
  };
  EXPECT_GT(artifact::testing::count_refused_damages(good_plan(), kSeed, check), 10'000)
      << "seed " << kSeed;
}

}  // namespace
}  // namespace hone::runtime
