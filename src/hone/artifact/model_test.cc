#include "hone/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hone/artifact/artifact_testing.h"
#include "hone/runtime/hone_model.h"

namespace hone::artifact {
namespace {

using testing::filter_spec;
using testing::Folder;
using testing::kLength;

std::string open_error(const std::string& path) {
  const Result<Model> model = Model::load(path, 1);
  return model.ok() ? "" : model.status().message();
}

class Artifact {
 public:
  Artifact() : path_(folder_.file("model.so")) {
    const Status status =
        write_shared_library(filter_spec(testing::read_file(HONE_TEST_KERNELS)), path_);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string bytes() const { return testing::read_file(path_); }
  // Writes other bytes beside it.
  [[nodiscard]] std::string variant(const std::string& bytes) const {
    std::ofstream(folder_.file("variant.so"), std::ios::binary) << bytes;
    return folder_.file("variant.so");
  }

 private:
  Folder folder_;
  std::string path_;
};

TEST(loaded_model, refuses_what_is_no_artifact) {
  const Artifact artifact;
  EXPECT_EQ(open_error("/no/such/model.so"),
            "cannot read '/no/such/model.so': no such file or directory");
  const std::string text = artifact.variant("this is text");
  EXPECT_EQ(open_error(text), text + " is not a shared library");
  const std::string empty = artifact.variant("");
  EXPECT_EQ(open_error(empty), empty + " is not a shared library");
  const std::string self = "/proc/self/exe";  // a program; often a position-independent one
  EXPECT_NE(open_error(self), "");
}

TEST(loaded_model, refuses_a_time_limit_that_is_no_number) {
  const Artifact artifact;
  EXPECT_EQ(Model::load(artifact.path(), {.time_limit = NAN}).status().message(),
            "the time limit is not a number");
  for (const double any : {0.0, 1e-9, 1e300, HUGE_VAL})
    EXPECT_TRUE(Model::load(artifact.path(), {.num_threads = 1, .time_limit = any}).ok()) << any;
}

TEST(loaded_model, a_trace_says_when_each_thread_worked) {
  const Artifact artifact;
  Result<Model> model = Model::load(artifact.path(), 2);
  ASSERT_TRUE(model.ok()) << model.status().message();
  Tensor x(DType::kF32, {1, kLength});
  std::ranges::fill(x.as<float>(), 2.0F);
  EXPECT_TRUE(model->thread_work().empty());
  ASSERT_TRUE(model->trace(true).ok());
  EXPECT_TRUE(model->thread_work().empty()) << "nothing ran yet";
  ASSERT_TRUE(model->run({&x, 1}).ok());
  const std::vector<StepTime> steps = model->step_times();
  const std::vector<ThreadWork> work = model->thread_work();
  double begin = 0;
  for (int step = 0; step < std::ssize(steps); ++step) {
    const double end = begin + steps[static_cast<size_t>(step)].seconds;
    int threads = 0;
    for (const ThreadWork& part : work) {
      if (part.step != step) continue;
      ++threads;
      EXPECT_TRUE(part.thread == 0 || part.thread == 1) << part.thread;
      EXPECT_LE(begin, part.begin + 1e-9);
      EXPECT_LE(part.begin, part.end);
      EXPECT_LE(part.end, end + 1e-4);  // what comes before the first step is no step's
    }
    EXPECT_GE(threads, 1) << "step " << step;
    begin = end;
  }
  ASSERT_TRUE(model->trace(false).ok());
  EXPECT_TRUE(model->thread_work().empty());
}

TEST(loaded_model, refuses_every_truncated_artifact) {
  const Artifact artifact;
  const std::string bytes = artifact.bytes();
  for (size_t size = 0; size < bytes.size() / 2; size += 509) {
    const std::string path = artifact.variant(bytes.substr(0, size));
    EXPECT_NE(open_error(path), "") << "cut to " << size << " of " << bytes.size() << " bytes";
  }
}

// tune() does this to a library that is loaded: the name is the same, the file is not.
TEST(loaded_model, loads_the_file_that_has_taken_the_place_of_a_loaded_one) {
  const Folder folder;
  const std::string path = folder.file("model.so");
  const float other[3] = {1, 1, 1};
  ArtifactSpec spec = filter_spec(testing::read_file(HONE_TEST_KERNELS));
  Tensor x(DType::kF32, {1, kLength});
  std::ranges::fill(x.as<float>(), 2.0F);
  std::vector<Model> models;
  for (const float* weights : {testing::kWeights, other}) {
    spec.weights = {{weights, sizeof other}};
    ASSERT_TRUE(write_shared_library(spec, path).ok());
    Result<Model> model = Model::load(path, 1);
    ASSERT_TRUE(model.ok()) << model.status().message();
    models.push_back(*std::move(model));
  }
  const float sums[] = {testing::kWeights[0] + testing::kWeights[1] + testing::kWeights[2], 3};
  // The number of a descriptor is used again while its library is still loaded.
  Result<Model> again = Model::load(path, 1);
  ASSERT_TRUE(again.ok());
  models[1] = *std::move(again);
  ASSERT_TRUE(Model::load(path, 1).ok());
  for (size_t i = 0; i < models.size(); ++i) {
    const Result<std::vector<Tensor>> y = models[i].run({&x, 1});
    ASSERT_TRUE(y.ok()) << y.status().message();
    EXPECT_EQ((*y)[0].at(1), 2 * sums[i]) << i;
  }
}

TEST(loaded_model, accepts_the_versions_that_it_knows_only) {
  const Artifact artifact;
  std::string bytes = artifact.bytes();
  const size_t place = bytes.find(fmt::format("{} hone_model", HONE_ABI_VERSION));
  ASSERT_NE(place, std::string::npos);
  bytes[place] = '2';
  EXPECT_TRUE(Model::load(artifact.variant(bytes)).ok());
  bytes[place] = '9';
  const std::string path = artifact.variant(bytes);
  EXPECT_EQ(
      open_error(path),
      fmt::format("{} has version 9 of the model interface, expected 2 to {}: compile it again",
                  path, HONE_ABI_VERSION));
}

TEST(loaded_model, refuses_another_machine) {
  const Artifact artifact;
  std::string bytes = artifact.bytes();
  bytes[18] = 8;  // e_machine: MIPS
  EXPECT_NE(open_error(artifact.variant(bytes)).find("another machine"), std::string::npos);
}

TEST(loaded_model, checks_what_it_is_given) {
  const Artifact artifact;
  Result<Model> model = Model::load(artifact.path(), 1);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto message = [&](const std::vector<Tensor>& inputs) {
    return model->run(inputs).status().message();
  };
  EXPECT_EQ(message({}), "found 0 inputs, expected 1");
  EXPECT_EQ(message({Tensor(DType::kF32, {kLength})}),
            "input x has shape [1000], expected [1, 1000]");
  EXPECT_EQ(message({Tensor(DType::kF64, {1, kLength})}), "input x has type f64, expected f32");
  EXPECT_EQ(message({Tensor(DType::kF32, {1, kLength})}), "");
}

// Numbers below the smallest normal one are zeros inside of a run, on whatever thread; the caller's
// own arithmetic keeps them.
TEST(loaded_model, takes_denormals_for_zeros) {
  const Artifact artifact;
  const volatile float tiny = 1e-40F;
  for (const int threads : {1, 2, 16}) {
    SCOPED_TRACE(threads);
    Result<Model> model = Model::load(artifact.path(), threads);
    ASSERT_TRUE(model.ok()) << model.status().message();
    Tensor x(DType::kF32, {1, kLength});
    std::ranges::fill(x.as<float>(), tiny);
    const Result<std::vector<Tensor>> outputs = model->run(std::vector<Tensor>{x});
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    for (const float y : outputs->at(0).as<float>()) ASSERT_EQ(y, 0);
    EXPECT_GT(tiny * 2, 0);
  }
}

}  // namespace
}  // namespace hone::artifact
