// A library whose shapes vary, through hone::Model and through its C interface.
#include <gtest/gtest.h>

#include "hone/artifact/loaded_library_testing.h"
#include "hone/artifact/varying_testing.h"
#include "hone/model.h"
#include "hone/runtime/hone_model.h"

namespace hone::artifact {
namespace {

using testing::kBatch;
using testing::kPast;
using testing::kSeq;
using testing::varying_spec;

class Library : public testing::LoadedLibrary {
 public:
  Library() : LoadedLibrary(varying_spec(testing::read_file(HONE_TEST_KERNELS))) {
    find("hone_model_create", create);
    find("hone_model_destroy", destroy);
    find("hone_model_run", run);
    find("hone_model_last_error", last_error);
    find("hone_model_set_input_shape", set_input_shape);
    find("hone_model_input_shape", input_shape);
    find("hone_model_input_least_shape", input_least_shape);
    find("hone_model_output_shape", output_shape);
    find("hone_model_input_dim", input_dim);
    find("hone_model_output_dim", output_dim);
  }
  decltype(&hone_model_create) create = nullptr;
  decltype(&hone_model_destroy) destroy = nullptr;
  decltype(&hone_model_run) run = nullptr;
  decltype(&hone_model_last_error) last_error = nullptr;
  decltype(&hone_model_set_input_shape) set_input_shape = nullptr;
  decltype(&hone_model_input_shape) input_shape = nullptr;
  decltype(&hone_model_input_least_shape) input_least_shape = nullptr;
  decltype(&hone_model_output_shape) output_shape = nullptr;
  decltype(&hone_model_input_dim) input_dim = nullptr;
  decltype(&hone_model_output_dim) output_dim = nullptr;
};

TEST(varying_library, has_a_c_interface) {
  const Library library;
  hone_model* model = nullptr;
  ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
  EXPECT_STREQ(library.input_dim(model, 1, 1), "past + seq");
  EXPECT_STREQ(library.output_dim(model, 1, 0), "batch*(past + seq)");
  EXPECT_EQ(library.output_dim(model, 2, 0), nullptr);
  EXPECT_EQ(library.input_dim(model, 0, 2), nullptr);
  EXPECT_EQ(library.input_dim(model, 5, 0), nullptr);
  EXPECT_EQ(library.input_dim(nullptr, 0, 0), nullptr);

  int rank = 0;
  const int64_t* shape = nullptr;
  ASSERT_EQ(library.input_least_shape(model, 1, &rank, &shape), 0);
  EXPECT_EQ(Shape(shape, shape + rank), (Shape{1, 1}));
  const int64_t x_shape[] = {2, 3}, mask_shape[] = {2, 4}, other[] = {3, 4};
  EXPECT_NE(library.set_input_shape(nullptr, 0, 2, x_shape), 0);
  EXPECT_NE(library.set_input_shape(model, 2, 2, x_shape), 0);
  EXPECT_STREQ(library.last_error(model), "there is no input with this number");
  ASSERT_EQ(library.set_input_shape(model, 0, 2, x_shape), 0);
  ASSERT_EQ(library.set_input_shape(model, 1, 2, other), 0);
  EXPECT_NE(library.output_shape(model, 0, &rank, &shape), 0);
  EXPECT_STREQ(library.last_error(model),
               "input 'mask': dimension 0 (batch) is 3, expected 2: batch is 2 by input 'x'");
  EXPECT_NE(library.input_shape(model, 0, &rank, &shape), 0);
  ASSERT_EQ(library.set_input_shape(model, 1, 2, mask_shape), 0);
  ASSERT_EQ(library.output_shape(model, 1, &rank, &shape), 0);
  EXPECT_EQ(Shape(shape, shape + rank), (Shape{8}));

  const float x[6] = {1, 2, 3, 4, 5, 6}, mask[8] = {};
  float y[6], flat[8];
  int64_t seen[3];
  const void* inputs[] = {x, mask};
  void* outputs[] = {y, flat, seen};
  ASSERT_EQ(library.run(model, inputs, outputs), 0) << library.last_error(model);
  EXPECT_EQ(y[5], 7);
  EXPECT_EQ(flat[7], 1);
  EXPECT_EQ(seen[2], 4);
  library.destroy(model);
}

TEST(varying_library, is_run_on_tensors_of_any_size) {
  const Library library;
  Result<Model> model = Model::load(library.path(), 1);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->inputs()[1].dims, (std::vector<std::string>{"batch", "past + seq"}));
  EXPECT_EQ(model->inputs()[1].shape, (Shape{kBatch, kPast + kSeq}));
  EXPECT_EQ(model->inputs()[1].least, (Shape{1, 1}));
  EXPECT_TRUE(model->outputs()[2].dims.empty());
  for (const int64_t batch : {3, 1, 4}) {
    Tensor x(DType::kF32, {batch, 2}), mask(DType::kF32, {batch, 5});
    for (int64_t i = 0; i < x.size(); ++i) x.set(i, static_cast<double>(i));
    for (int64_t i = 0; i < mask.size(); ++i) mask.set(i, static_cast<double>(-i));
    const Tensor inputs[] = {x, mask};
    const Result<std::vector<Tensor>> outputs = model->run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    ASSERT_EQ((*outputs)[0].shape(), (Shape{batch, 2}));
    ASSERT_EQ((*outputs)[1].shape(), (Shape{batch * 5}));
    for (int64_t i = 0; i < x.size(); ++i) EXPECT_EQ((*outputs)[0].at(i), x.at(i) + 1);
    for (int64_t i = 0; i < mask.size(); ++i) EXPECT_EQ((*outputs)[1].at(i), mask.at(i) + 1);
    EXPECT_EQ(*model->input_shape(0), (Shape{batch, 2}));
  }
  EXPECT_EQ(model->set_input_shape(0, {9, 2}).message(),
            "input 'x': dimension 0 (batch) is 9, expected 1 to 4");
  EXPECT_FALSE(model->set_input_shape(2, {9, 2}).ok());
}

TEST(varying_library, header_names_its_sizes) {
  const std::string text = header_text(varying_spec(""));
  const std::string expected =
      "/* varying: compiled by Hone.\n"
      " *   input 0: x f32[batch, seq]\n"
      " *   input 1: mask f32[batch, past + seq]\n"
      " *   output 0: y f32[batch, seq]\n"
      " *   output 1: flat f32[batch*(past + seq)]\n"
      " *   output 2: seen i64[3]\n"
      " *   batch: 1 to 4\n"
      " *   seq: 1 to 6\n"
      " *   past: 0 to 5\n"
      " */\n";
  EXPECT_EQ(text.substr(0, expected.size()), expected);
}

}  // namespace
}  // namespace hone::artifact
