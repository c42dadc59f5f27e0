#include "hone/artifact/weights_segment.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "hone/artifact/artifact_testing.h"
#include "hone/artifact/linker.h"
#include "hone/model.h"

namespace hone::artifact {
namespace {

using testing::filter_input;
using testing::filter_output;
using testing::filter_spec;
using testing::Folder;
using testing::kLength;

ArtifactSpec spec() { return filter_spec(testing::read_file(HONE_TEST_KERNELS)); }

std::vector<float> run(const std::string& path, const std::vector<float>& x) {
  Result<Model> model = Model::load(path, 2);
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) return {};
  Tensor input(DType::kF32, {1, kLength});
  std::copy(x.begin(), x.end(), input.as<float>().begin());
  const Result<std::vector<Tensor>> results = model->run({{input}});
  EXPECT_TRUE(results.ok()) << results.status().message();
  if (!results.ok()) return {};
  const std::span<const float> y = (*results)[0].as<float>();
  return {y.begin(), y.end()};
}

TEST(weights_segment, every_linker_leaves_room) {
  for (const char* name : {"ld", "ld.gold", "ld.lld", "ld.lld-22"}) {
    SCOPED_TRACE(name);
    const Result<std::string> linker = find_linker(name, host_machine());
    if (!linker.ok()) continue;
    const Folder folder;
    const std::string path = folder.file("a.so");
    const Status written = write_shared_library(spec(), path, {.linker = *linker});
    ASSERT_TRUE(written.ok()) << written.message();
    EXPECT_EQ(run(path, filter_input(3)), filter_output(filter_input(3)));
  }
}

// Tools that rewrite libraries keep the weights, as they are a section.
TEST(weights_segment, stripped_library_runs) {
  const Folder folder;
  const std::string path = folder.file("a.so");
  ASSERT_TRUE(write_shared_library(spec(), path).ok());
  const size_t before = testing::read_file(path).size();
  ASSERT_EQ(std::system(("strip --strip-unneeded " + path).c_str()), 0);
  EXPECT_NE(testing::read_file(path).size(), before);
  EXPECT_EQ(run(path, filter_input(5)), filter_output(filter_input(5)));
}

TEST(weights_segment, model_without_weights_runs) {
  const Folder folder;
  ArtifactSpec empty = spec();
  empty.weights.clear();
  empty.steps[1].arguments[1] = {ArgumentKind::kInput, 0, 0};  // the filter is the input's start
  const Status written = write_shared_library(empty, folder.file("a.so"));
  ASSERT_TRUE(written.ok()) << written.message();
  EXPECT_EQ(run(folder.file("a.so"), filter_input(1)).size(), static_cast<size_t>(kLength));
}

TEST(weights_segment, model_with_empty_weights_only_runs) {
  const Folder folder;
  ArtifactSpec empty = spec();
  empty.weights = {{nullptr, 0}};
  const Status written = write_shared_library(empty, folder.file("a.so"));
  ASSERT_TRUE(written.ok()) << written.message();
  EXPECT_EQ(run(folder.file("a.so"), filter_input(1)).size(), static_cast<size_t>(kLength));
}

TEST(weights_segment, refuses_a_library_without_room) {
  const Folder folder;
  const std::string path = folder.file("a.so");
  ASSERT_TRUE(write_shared_library(spec(), path).ok());
  const std::string before = testing::read_file(path);
  const Status again = append_weights(spec(), path);
  EXPECT_NE(again.message().find("not reserved"), std::string::npos) << again.message();
  EXPECT_EQ(testing::read_file(path), before);
}

}  // namespace
}  // namespace hone::artifact
