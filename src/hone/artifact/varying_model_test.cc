// A model whose shapes vary, run by the runtime without an artifact.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>

#include "hone/artifact/varying_kernels_testing.h"
#include "hone/artifact/varying_testing.h"
#include "hone/base/sanitizers.h"
#include "hone/runtime/model.h"

namespace {
// Allocations of this program; not counted with a sanitizer, which has an allocator of its own.
std::atomic<int64_t> allocations{0};
}  // namespace

#ifndef HONE_SANITIZER
extern "C" {
void* __libc_malloc(size_t);          // NOLINT
void* __libc_calloc(size_t, size_t);  // NOLINT
void* __libc_realloc(void*, size_t);  // NOLINT
void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  ++allocations;
  return __libc_realloc(old, size);
}
}
#endif

namespace hone::runtime {
namespace {

using artifact::testing::kBatch;
using artifact::testing::kPast;
using artifact::testing::kSeq;

std::atomic<int64_t> tiles_run{0}, long_tiles_run{0};

int add_rows(void* const* args, void*, int64_t first, int64_t last, int) {
  tiles_run += last - first;
  return artifact::testing::add_rows(args, kSeq, first, last);
}
int add_long_rows(void* const* args, void*, int64_t first, int64_t last, int) {
  long_tiles_run += last - first;
  return artifact::testing::add_rows(args, kPast + kSeq, first, last);
}
int copy_sizes(void* const* args, void*, int64_t, int64_t, int) {
  return artifact::testing::copy_sizes(args);
}
constexpr hone_kernel kKernels[] = {add_rows, add_long_rows, copy_sizes};

using Dims = std::vector<int64_t>;
using ModelPtr = std::unique_ptr<Model, void (*)(Model*)>;

// Arrays for one run, each behind and before some floats that nothing may touch.
class Arrays {
 public:
  Arrays(int64_t batch, int64_t seq, int64_t all, float first) : batch_(batch) {
    x_ = make(batch * seq);
    mask_ = make(batch * all);
    for (int64_t i = 0; i < batch * seq; ++i) x_[at(i)] = first + static_cast<float>(i);
    for (int64_t i = 0; i < batch * all; ++i) mask_[at(i)] = first - static_cast<float>(i);
    y_ = make(batch * seq);
    flat_ = make(batch * all);
  }
  int run(Model& model) {
    const void* inputs[] = {x_.data() + kGuard, mask_.data() + kGuard};
    void* outputs[] = {y_.data() + kGuard, flat_.data() + kGuard, seen_.data()};
    return model_run(model, inputs, outputs);
  }
  // Expects the outputs that belong to the inputs.
  void check(const Dims& sizes) const {
    check_pair(x_, y_);
    check_pair(mask_, flat_);
    EXPECT_EQ(seen_, sizes);
  }

 private:
  static constexpr int64_t kGuard = 5;
  static constexpr float kNobody = 12345;
  static size_t at(int64_t i) { return static_cast<size_t>(i + kGuard); }
  static std::vector<float> make(int64_t count) {
    return std::vector<float>(static_cast<size_t>(count + 2 * kGuard), kNobody);
  }
  static void check_pair(const std::vector<float>& from, const std::vector<float>& to) {
    for (size_t i = 0; i < from.size(); ++i) {
      const bool inside = i >= at(0) && i + kGuard < from.size();
      EXPECT_EQ(to[i], inside ? from[i] + 1 : kNobody) << i;
    }
  }
  int64_t batch_;
  std::vector<float> x_, mask_, y_, flat_;
  Dims seen_ = Dims(3);
};

class Varying : public ::testing::Test {
 protected:
  Varying() : Varying(artifact::testing::varying_spec("")) {}
  explicit Varying(const artifact::ArtifactSpec& spec)
      : plan_(artifact::encode_plan(spec).value()), model_(make(2)) {}
  ModelPtr make(int threads) {
    char message[kErrorBytes] = "";
    ModelPtr model(model_create({plan_.data(), plan_.size(), kKernels, nullptr},
                                {.num_threads = threads}, message),
                   model_destroy);
    EXPECT_NE(model, nullptr) << message;
    return model;
  }
  int set(int input, const Dims& dims) {
    return model_set_input_shape(*model_, input, static_cast<int>(dims.size()), dims.data());
  }
  // Expects that a shape is refused, and that nothing changes.
  void refuse(int input, const Dims& dims, const char* message) {
    const Dims before = shape(model_input_shape(*model_, 0), 2);
    EXPECT_NE(set(input, dims), 0);
    EXPECT_STREQ(model_last_error(*model_), message);
    EXPECT_EQ(shape(model_input_shape(*model_, 0), 2), before);
  }
  static Dims shape(const int64_t* dims, int rank) { return {dims, dims + rank}; }

  std::string plan_;
  ModelPtr model_;
};

TEST_F(Varying, has_the_largest_shapes_at_first) {
  Arrays arrays(kBatch, kSeq, kPast + kSeq, 1);
  ASSERT_EQ(arrays.run(*model_), 0) << model_last_error(*model_);
  arrays.check({kBatch, kSeq, kPast + kSeq});
  EXPECT_EQ(shape(model_least_input_shape(*model_, 1), 2), (Dims{1, 1}));
}

TEST_F(Varying, runs_at_each_size_on_dense_arrays) {
  for (int64_t batch = 1; batch <= kBatch; ++batch) {
    for (int64_t seq = 1; seq <= kSeq; ++seq) {
      for (int64_t past = 0; past <= kPast; past += 2) {
        ASSERT_EQ(set(0, {batch, seq}), 0) << model_last_error(*model_);
        ASSERT_EQ(set(1, {batch, past + seq}), 0) << model_last_error(*model_);
        EXPECT_EQ(shape(model_output_shape(*model_, 0), 2), (Dims{batch, seq}));
        EXPECT_EQ(shape(model_output_shape(*model_, 1), 1), (Dims{batch * (past + seq)}));
        EXPECT_EQ(shape(model_output_shape(*model_, 2), 1), (Dims{3}));
        Arrays arrays(batch, seq, past + seq, static_cast<float>(batch * 100 + seq * 10 + past));
        tiles_run = 0;
        ASSERT_EQ(arrays.run(*model_), 0) << model_last_error(*model_);
        arrays.check({batch, seq, past + seq});
        EXPECT_EQ(tiles_run, batch);
      }
    }
  }
}

TEST_F(Varying, inputs_that_were_never_set_follow) {
  ASSERT_EQ(set(0, {2, 3}), 0);
  EXPECT_EQ(shape(model_input_shape(*model_, 1), 2), (Dims{2, kPast + 3}));
  // `past` is known from both.
  ASSERT_EQ(set(1, {2, 4}), 0);
  Arrays arrays(2, 3, 4, 1);
  ASSERT_EQ(arrays.run(*model_), 0) << model_last_error(*model_);
  arrays.check({2, 3, 4});
}

TEST_F(Varying, what_is_out_of_range_is_refused_at_once) {
  ASSERT_EQ(set(0, {2, 3}), 0);
  refuse(0, {5, 3}, "input 'x': dimension 0 (batch) is 5, expected 1 to 4");
  refuse(0, {2, 0}, "input 'x': dimension 1 (seq) is 0, expected 1 to 6");
  refuse(0, {-1, 3}, "input 'x': dimension 0 (batch) is -1, expected 1 to 4");
  refuse(0, {INT64_MIN, INT64_MAX},
         "input 'x': dimension 0 (batch) is -9223372036854775808, expected 1 to 4");
  refuse(1, {2, 12}, "input 'mask': dimension 1 (past + seq) is 12, expected 1 to 11");
  refuse(0, {2}, "input 'x': found a shape of rank 1, expected rank 2");
  refuse(0, {2, 3, 1}, "input 'x': found a shape of rank 3, expected rank 2");
  EXPECT_NE(model_set_input_shape(*model_, 0, 2, nullptr), 0);
  EXPECT_STREQ(model_last_error(*model_), "input 'x': found no extents (NULL), expected 2 of them");
}

TEST_F(Varying, shapes_that_were_set_must_agree_in_a_run) {
  ASSERT_EQ(set(0, {2, 3}), 0);
  ASSERT_EQ(set(1, {3, 6}), 0);
  Arrays arrays(3, 6, 11, 1);
  EXPECT_NE(arrays.run(*model_), 0);
  EXPECT_STREQ(model_last_error(*model_),
               "input 'mask': dimension 0 (batch) is 3, expected 2: batch is 2 by input 'x'");
  EXPECT_EQ(model_output_shape(*model_, 0), nullptr);
  EXPECT_STREQ(model_shape_conflict(*model_), model_last_error(*model_));
  ASSERT_EQ(set(1, {2, 2}), 0);
  EXPECT_NE(arrays.run(*model_), 0);
  EXPECT_STREQ(model_last_error(*model_),
               "input 'mask': dimension 1 (past + seq) is 2, expected 3: seq is 3 by input 'x'");
  ASSERT_EQ(set(1, {2, 9}), 0);
  EXPECT_NE(arrays.run(*model_), 0);
  EXPECT_STREQ(
      model_last_error(*model_),
      "input 'mask': dimension 1 (past + seq) is 9, with which past would be 6, expected 0 "
      "to 5: seq is 3 by input 'x'");
  ASSERT_EQ(set(1, {2, 8}), 0);
  Arrays right(2, 3, 8, 1);
  EXPECT_EQ(right.run(*model_), 0) << model_last_error(*model_);
}

TEST_F(Varying, a_sum_alone_tells_none_of_its_terms) {
  ASSERT_EQ(set(1, {2, 7}), 0);
  Arrays arrays(kBatch, kSeq, kPast + kSeq, 1);
  EXPECT_NE(arrays.run(*model_), 0);
  EXPECT_STREQ(
      model_last_error(*model_),
      "input 'mask': dimension 1 (past + seq) is 7, but no input tells seq: set the shapes "
      "of others, too");
  ASSERT_EQ(set(0, {2, 3}), 0);
  EXPECT_EQ(shape(model_output_shape(*model_, 1), 1), (Dims{14}));
}

TEST_F(Varying, a_step_that_is_chosen_follows_the_sizes) {
  const int32_t steps[] = {0, 2, 0};
  ASSERT_TRUE(model_choose(*model_, steps, 3));
  ASSERT_EQ(set(0, {3, 3}), 0);
  Arrays arrays(3, 3, kPast + 3, 1);
  tiles_run = 0;
  ASSERT_EQ(arrays.run(*model_), 0);
  EXPECT_EQ(tiles_run, 6);
}

// The step that is left out begins a group of two.
TEST_F(Varying, steps_that_a_run_does_not_need_are_left_out) {
  artifact::ArtifactSpec spec = artifact::testing::varying_spec("");
  spec.steps[0].run = {.form = 1, .least = 3};
  spec.steps[1].joins = true;
  spec.steps[0].units = spec.steps[1].units = 1;
  plan_ = artifact::encode_plan(spec).value();
  model_ = make(2);
  for (const int64_t seq : {6, 2, 3, 1}) {
    for (const bool profiled : {false, true}) {
      model_profile(*model_, profiled);
      ASSERT_EQ(set(0, {2, seq}), 0);
      Arrays arrays(2, seq, kPast + seq, 1);
      tiles_run = long_tiles_run = 0;
      ASSERT_EQ(arrays.run(*model_), 0) << model_last_error(*model_);
      if (seq >= 3) arrays.check({2, seq, kPast + seq});
      EXPECT_EQ(tiles_run, seq < 3 ? 0 : 2);
      EXPECT_EQ(long_tiles_run, 2);
    }
  }
}

TEST_F(Varying, setting_and_running_allocate_nothing) {
  Arrays small(1, 2, 3, 1), large(kBatch, kSeq, kPast + kSeq, 1);
  const int64_t before = allocations;
  const int64_t low[2] = {1, 2}, low_sum[2] = {1, 3};
  const int64_t high[2] = {kBatch, kSeq}, high_sum[2] = {kBatch, kPast + kSeq};
  int failures = 0;
  for (int round = 0; round < 50; ++round) {
    failures += model_set_input_shape(*model_, 0, 2, low);
    failures += model_set_input_shape(*model_, 1, 2, low_sum);
    failures += small.run(*model_);
    failures += model_set_input_shape(*model_, 0, 2, high);
    failures += model_set_input_shape(*model_, 1, 2, high_sum);
    failures += large.run(*model_);
  }
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(failures, 0);
#ifndef HONE_SANITIZER
  EXPECT_GT(before, 0) << "allocations are not counted";
#endif
}

TEST_F(Varying, nulls_are_arrays_without_elements) {
  // Inputs without `past` are empty.
  artifact::ArtifactSpec spec = artifact::testing::varying_spec("");
  spec.forms.push_back({.terms = {{1, {2}}}});
  spec.inputs[1] = {.name = "past", .shape = {kPast}, .dims = {{{3, kPast}}}};
  spec.outputs[1] = {.name = "copy", .shape = {kPast}, .dims = {{{3, kPast}}}};
  spec.steps.erase(spec.steps.begin() + 1);
  plan_ = artifact::encode_plan(spec).value();
  model_ = make(1);
  ASSERT_EQ(set(0, {1, 1}), 0);
  ASSERT_EQ(set(1, {0}), 0);
  const float x = 1;
  float y = 0;
  int64_t seen[3] = {};
  const void* inputs[] = {&x, nullptr};
  void* outputs[] = {&y, nullptr, seen};
  ASSERT_EQ(model_run(*model_, inputs, outputs), 0) << model_last_error(*model_);
  EXPECT_EQ(y, 2);
  ASSERT_EQ(set(1, {1}), 0);
  EXPECT_NE(model_run(*model_, inputs, outputs), 0);
  EXPECT_STREQ(model_last_error(*model_), "input 'past' is a null pointer");
}

// One input whose dimensions have these forms of the symbols n in 1..8 and m in 0..3.
class Forms : public ::testing::Test {
 protected:
  ModelPtr make(const std::vector<artifact::ArtifactForm>& forms) {
    artifact::ArtifactSpec spec;
    spec.symbols = {{"n", 1, 8}, {"m", 0, 3}};
    spec.forms = forms;
    artifact::ArtifactTensor input = {.name = "x"};
    for (size_t f = 0; f < forms.size(); ++f) {
      int64_t sum = forms[f].offset;
      for (const artifact::ArtifactTerm& term : forms[f].terms) {
        int64_t product = term.factor;
        for (const int s : term.symbols) product *= spec.symbols[static_cast<size_t>(s)].max;
        sum += product;
      }
      input.shape.push_back(sum / forms[f].divisor);
      input.dims.push_back({{static_cast<int>(f), input.shape.back()}});
    }
    spec.inputs = {input};
    spec.outputs = {{.name = "y", .shape = {1}}};
    spec.sizes = 0;
    spec.arena_bytes = kMaxForms * 8;
    const Result<std::string> plan = artifact::encode_plan(spec);
    if (!plan.ok()) {
      problem_ = plan.status().message();
      return {nullptr, model_destroy};
    }
    plans_.push_back(*plan);
    char message[kErrorBytes] = "";
    return {model_create({plans_.back().data(), plans_.back().size(), nullptr, nullptr},
                         {.num_threads = 1}, message),
            model_destroy};
  }
  static std::string error_of(Model& model, const Dims& dims) {
    const int result = model_set_input_shape(model, 0, static_cast<int>(dims.size()), dims.data());
    return result == 0 ? "" : model_last_error(model);
  }
  std::string problem_;
  std::deque<std::string> plans_;
};

const artifact::ArtifactForm kN = {.terms = {{1, {0}}}};
const artifact::ArtifactForm kM = {.terms = {{1, {1}}}};

TEST_F(Forms, are_solved_for_what_they_have) {
  // n, n * m, (3n + 1) / 2, 49n
  const ModelPtr model = make({kN,
                               {.terms = {{1, {0, 1}}}},
                               {.terms = {{3, {0}}}, .offset = 1, .divisor = 2},
                               {.terms = {{49, {0}}}}});
  ASSERT_NE(model, nullptr) << problem_;
  EXPECT_EQ(error_of(*model, {2, 6, 3, 98}), "");
  EXPECT_EQ(error_of(*model, {3, 0, 5, 147}), "");
  EXPECT_EQ(error_of(*model, {2, 5, 3, 98}), "input 'x': dimension 1 (n*m) is 5, expected 6");
  EXPECT_EQ(error_of(*model, {2, 8, 3, 98}),
            "input 'x': dimension 1 (n*m) is 8, with which m would be 4, expected 0 to 3");
  EXPECT_EQ(error_of(*model, {2, 6, 4, 98}),
            "input 'x': dimension 2 ((3*n + 1)/2) is 4, expected 3");
  EXPECT_EQ(error_of(*model, {2, 6, 3, 99}),
            "input 'x': dimension 3 (49*n) is 99, expected a multiple of 49");
  EXPECT_EQ(error_of(*model, {2, 6, 3, 147}), "input 'x': dimension 3 (49*n) is 147, expected 98");
}

TEST_F(Forms, of_symbols_that_no_input_tells_are_refused) {
  EXPECT_EQ(make({kM}), nullptr);
  EXPECT_EQ(problem_, "the model cannot be written: a size of the plan follows from no input");
  EXPECT_EQ(make({{.terms = {{1, {0}}, {1, {1}}}}}), nullptr);
  EXPECT_EQ(problem_, "the model cannot be written: a size of the plan follows from no input");
  EXPECT_NE(make({{.terms = {{1, {0}}, {1, {1}}}}, kM}), nullptr) << problem_;
}

TEST(fixed_shapes, can_be_set_to_what_they_are) {
  artifact::ArtifactSpec spec;
  spec.inputs = {{.name = "x", .shape = {4}}};
  const std::string plan = artifact::encode_plan(spec).value();
  char message[kErrorBytes] = "";
  const ModelPtr model(
      model_create({plan.data(), plan.size(), nullptr, nullptr}, {.num_threads = 1}, message),
      model_destroy);
  ASSERT_NE(model, nullptr) << message;
  const int64_t same = 4, other = 3;
  EXPECT_EQ(model_set_input_shape(*model, 0, 1, &same), 0);
  EXPECT_NE(model_set_input_shape(*model, 0, 1, &other), 0);
  EXPECT_STREQ(model_last_error(*model), "input 'x': dimension 0 is 3, expected 4");
}

}  // namespace
}  // namespace hone::runtime
