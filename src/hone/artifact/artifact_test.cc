#include "hone/artifact/artifact.h"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>

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

const std::string& kernels() {
  static const std::string object = testing::read_file(HONE_TEST_KERNELS);
  return object;
}

Tensor input_tensor(const std::vector<float>& values) {
  Tensor x(DType::kF32, {1, kLength});
  std::copy(values.begin(), values.end(), x.as<float>().begin());
  return x;
}

void expect_filters(Model& model, float seed) {
  const std::vector<float> x = filter_input(seed);
  Result<std::vector<Tensor>> results = model.run({{input_tensor(x)}});
  ASSERT_TRUE(results.ok()) << results.status().message();
  const std::span<const float> y = (*results)[0].as<float>();
  EXPECT_EQ(std::vector<float>(y.begin(), y.end()), filter_output(x));
}

TEST(artifact, runs_on_any_number_of_threads) {
  const Folder folder;
  const std::string path = folder.file("filter.so");
  const Status written = write_shared_library(filter_spec(kernels()), path);
  ASSERT_TRUE(written.ok()) << written.message();
  for (const int threads : {0, 1, 2, 4, 16, 64}) {
    SCOPED_TRACE(threads);
    Result<Model> model = Model::load(path, threads);
    ASSERT_TRUE(model.ok()) << model.status().message();
    for (int i = 0; i < 20; ++i) expect_filters(*model, static_cast<float>(i));
  }
  EXPECT_EQ(folder.num_files(), 1);
}

#ifdef HONE_TEST_LIBC
// Another machine links a library for this one so: against stubs of this one's libc and libm.
TEST(artifact, is_linked_against_stubs_of_system_libraries) {
  const Runtimes as_elsewhere = [](Machine machine) {
    static const std::string libc = testing::read_file(HONE_TEST_LIBC);
    static const std::string libm = testing::read_file(HONE_TEST_LIBM);
    return MachineRuntime{runtime_of(machine).archive, libc, libm};
  };
  ASSERT_GT(as_elsewhere(host_machine()).libc.size(), 0u);
  const Folder folder;
  int linkers = 0;
  for (const char* name : {"ld", "ld.lld-22"}) {
    SCOPED_TRACE(name);
    const Result<std::string> linker = find_linker(name, host_machine());
    if (!linker.ok()) continue;
    ++linkers;
    const std::string path = folder.file(std::string(name) + ".so");
    const Status written = write_shared_library(filter_spec(kernels()), path,
                                                {.linker = *linker, .runtimes = as_elsewhere});
    ASSERT_TRUE(written.ok()) << written.message();
    Result<Model> model = Model::load(path, 2);
    ASSERT_TRUE(model.ok()) << model.status().message();
    for (int i = 0; i < 20; ++i) expect_filters(*model, static_cast<float>(i));
  }
  EXPECT_GT(linkers, 0);
}
#endif

TEST(artifact, describes_its_inputs_and_outputs) {
  const Folder folder;
  const std::string path = folder.file("filter.so");
  ASSERT_TRUE(write_shared_library(filter_spec(kernels()), path).ok());
  Result<Model> model = Model::load(path, 1);
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_EQ(model->inputs().size(), 1);
  EXPECT_EQ(model->inputs()[0].name, "x");
  EXPECT_EQ(model->inputs()[0].dtype, DType::kF32);
  EXPECT_EQ(model->inputs()[0].shape, (Shape{1, kLength}));
  ASSERT_EQ(model->outputs().size(), 2);
  EXPECT_EQ(model->outputs()[1].name, "positive");
}

TEST(artifact, gives_outputs_their_actual_shape) {
  const Folder folder;
  const std::string path = folder.file("filter.so");
  ASSERT_TRUE(write_shared_library(filter_spec(kernels()), path).ok());
  Result<Model> model = Model::load(path, 2);
  ASSERT_TRUE(model.ok()) << model.status().message();
  std::vector<float> x(kLength, -1);
  x[3] = 5;
  x[998] = 7;
  Result<std::vector<Tensor>> results = model->run({{input_tensor(x)}});
  ASSERT_TRUE(results.ok()) << results.status().message();
  const Tensor& positive = (*results)[1];
  EXPECT_EQ(positive.shape(), Shape{2});
  EXPECT_EQ(positive.at(0), 5);
  EXPECT_EQ(positive.at(1), 7);
}

TEST(artifact, takes_unaligned_arrays) {
  const Folder folder;
  const std::string path = folder.file("filter.so");
  ASSERT_TRUE(write_shared_library(filter_spec(kernels()), path).ok());
  Result<Model> model = Model::load(path, 2);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const std::vector<float> values = filter_input(3);
  std::vector<float> memory(3 * kLength + 64);
  // Whatever the allocation's address, at least two of these are unaligned.
  float* x = memory.data() + 1;
  float* y = x + kLength + 3;
  float* positive = y + kLength + 5;
  std::copy(values.begin(), values.end(), x);
  const void* inputs[] = {x};
  void* outputs[] = {y, positive};
  const Status ran = model->run(inputs, outputs);
  ASSERT_TRUE(ran.ok()) << ran.message();
  EXPECT_EQ(std::vector<float>(y, y + kLength), filter_output(values));
}

TEST(artifact, is_the_same_file_for_the_same_spec) {
  const Folder folder;
  const Folder other;
  for (const char* prefix : {"hone_model", "net"}) {
    ArtifactSpec spec = filter_spec(kernels());
    spec.prefix = prefix;
    const Status written = write_shared_library(spec, folder.file("a.so"));
    ASSERT_TRUE(written.ok()) << written.message();
    ASSERT_TRUE(write_shared_library(spec, other.file("b.so")).ok());
    const std::string bytes = testing::read_file(folder.file("a.so"));
    EXPECT_GT(bytes.size(), 1000U);
    EXPECT_EQ(bytes, testing::read_file(other.file("b.so")));
    EXPECT_EQ(bytes.find("hone-test-"), std::string::npos) << "a temporary path is in the file";
  }
}

TEST(artifact, of_two_prefixes_live_in_one_process) {
  const Folder folder;
  ArtifactSpec spec = filter_spec(kernels());
  spec.prefix = "first";
  ASSERT_TRUE(write_shared_library(spec, folder.file("first.so")).ok());
  spec.prefix = "second_net";
  const float weights[3] = {0, 1, 0};  // y = x
  spec.weights[0].data = weights;
  ASSERT_TRUE(write_shared_library(spec, folder.file("second.so")).ok());
  // In the global scope a name that both export would be bound to the first.
  ASSERT_NE(dlopen(folder.file("first.so").c_str(), RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  Result<Model> first = Model::load(folder.file("first.so"), 2);
  Result<Model> second = Model::load(folder.file("second.so"), 2);
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_TRUE(second.ok()) << second.status().message();
  expect_filters(*first, 1);
  const std::vector<float> x = filter_input(2);
  Result<std::vector<Tensor>> results = second->run({{input_tensor(x)}});
  ASSERT_TRUE(results.ok()) << results.status().message();
  const std::span<const float> y = (*results)[0].as<float>();
  EXPECT_EQ(std::vector<float>(y.begin(), y.end()), x);
}

TEST(artifact, exports_the_interface_only) {
  const Folder folder;
  ArtifactSpec spec = filter_spec(kernels());
  spec.prefix = "net";
  ASSERT_TRUE(write_shared_library(spec, folder.file("net.so")).ok());
  void* library = dlopen(folder.file("net.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  for (const char* name : {"net_create", "net_run", "net_output_shape", "net_abi_version"})
    EXPECT_NE(dlsym(library, name), nullptr) << name;
  for (const char* name :
       {"hone_model_create", "hone_abi_version", "hone_artifact_plan", "test_pad"})
    EXPECT_EQ(dlsym(library, name), nullptr) << name;
  dlclose(library);
}

TEST(artifact, keeps_large_weights_in_place) {
  // Weights that cross the sections that those of a static library are cut into.
  const Folder folder;
  std::vector<float> a((17 << 20) / 4 + 1, 1.0F);
  std::vector<float> b(5, 2.0F);
  std::vector<float> c((33 << 20) / 4 + 3, 3.0F);
  a.back() = 11;
  b.back() = 12;
  c.back() = 13;
  ArtifactSpec spec;
  spec.outputs = {{"out", DType::kF32, {3}}};
  spec.weights = {
      {a.data(), std::ssize(a) * 4}, {b.data(), std::ssize(b) * 4}, {c.data(), std::ssize(c) * 4}};
  spec.executables = {{.code = kernels()}};
  spec.kernel_symbols = {"test_gather3"};
  const auto last = [](int index, const std::vector<float>& values) {
    return ArtifactArgument{ArgumentKind::kWeight, index, (std::ssize(values) - 1) * 4};
  };
  spec.steps = {
      {"gather", 0, 1, 0, 0, {{ArgumentKind::kOutput, 0, 0}, last(0, a), last(1, b), last(2, c)}}};
  const Status written = write_shared_library(spec, folder.file("large.so"));
  ASSERT_TRUE(written.ok()) << written.message();
  Result<Model> model = Model::load(folder.file("large.so"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  Result<std::vector<Tensor>> results = model->run(std::span<const Tensor>());
  ASSERT_TRUE(results.ok()) << results.status().message();
  EXPECT_EQ((*results)[0].at(0), 11);
  EXPECT_EQ((*results)[0].at(1), 12);
  EXPECT_EQ((*results)[0].at(2), 13);

  ASSERT_TRUE(write_static_library(spec, folder.file("large.a")).ok());
  const std::string command = "cc -shared -Wl,--whole-archive " + folder.file("large.a") +
                              " -Wl,--no-whole-archive -o " + folder.file("static.so");
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto bytes = [](const std::vector<float>& values) {
    std::string text(reinterpret_cast<const char*>(values.data()), values.size() * 4);
    text.resize((text.size() + 63) / 64 * 64);
    return text;
  };
  EXPECT_NE(testing::read_file(folder.file("static.so")).find(bytes(a) + bytes(b) + bytes(c)),
            std::string::npos);
}

// Expects the weights of a shared library or a program to lie in one segment, which is not
// writable.
void expect_weights_read_only(const std::string& path) {
  const std::string bytes = testing::read_file(path);
  ASSERT_GT(bytes.size(), sizeof(Elf64_Ehdr));
  const std::string weights(reinterpret_cast<const char*>(testing::kWeights), 12);
  const size_t place = bytes.find(weights);
  ASSERT_NE(place, std::string::npos);
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  int segments_with_weights = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_GNU_STACK) {
      EXPECT_EQ(segment.p_flags & PF_X, 0U);
    }
    if (segment.p_type != PT_LOAD) continue;
    EXPECT_NE(segment.p_flags & (PF_W | PF_X), uint32_t{PF_W | PF_X});
    if (place < segment.p_offset || place >= segment.p_offset + segment.p_filesz) continue;
    ++segments_with_weights;
    EXPECT_EQ(segment.p_flags & PF_W, 0U);
  }
  EXPECT_EQ(segments_with_weights, 1);
}

TEST(artifact, maps_weights_read_only_and_code_unwritable) {
  const Folder folder;
  ASSERT_TRUE(write_shared_library(filter_spec(kernels()), folder.file("a.so")).ok());
  expect_weights_read_only(folder.file("a.so"));
}

// Weights are placed as if there were more than 1 GiB of them.
TEST(artifact, maps_far_weights_read_only) {
  for (const char* name : {"ld", "ld.lld-22"}) {
    SCOPED_TRACE(name);
    const Result<std::string> linker = find_linker(name, host_machine());
    if (!linker.ok()) continue;
    const ArtifactOptions options = {.linker = *linker, .near_weights = 0};
    const Folder folder;
    ArtifactSpec spec = filter_spec(kernels());
    ASSERT_TRUE(write_shared_library(spec, folder.file("a.so"), options).ok());
    expect_weights_read_only(folder.file("a.so"));
    Result<Model> model = Model::load(folder.file("a.so"), 2);
    ASSERT_TRUE(model.ok()) << model.status().message();
    expect_filters(*model, 1);
    ASSERT_TRUE(write_static_library(spec, folder.file("a.a"), options).ok());
    const std::string command = "cc -shared -Wl,--whole-archive " + folder.file("a.a") +
                                " -Wl,--no-whole-archive -o " + folder.file("b.so");
    ASSERT_EQ(std::system(command.c_str()), 0);
    expect_weights_read_only(folder.file("b.so"));
  }
}

TEST(artifact, objects_run_in_parallel) {
  const Folder folder;
  const std::string path = folder.file("filter.so");
  ASSERT_TRUE(write_shared_library(filter_spec(kernels()), path).ok());
  std::vector<Model> models;
  for (int t = 0; t < 4; ++t) {
    Result<Model> model = Model::load(path, 1 + t % 2);
    ASSERT_TRUE(model.ok()) << model.status().message();
    models.push_back(std::move(model).value());
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&model = models[static_cast<size_t>(t)], t] {
      for (int i = 0; i < 50; ++i) expect_filters(model, static_cast<float>(t * 100 + i));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(artifact, profiles_its_steps) {
  const Folder folder;
  const std::string path = folder.file("filter.so");
  ASSERT_TRUE(write_shared_library(filter_spec(kernels()), path).ok());
  Result<Model> model = Model::load(path, 2);
  ASSERT_TRUE(model.ok()) << model.status().message();
  expect_filters(*model, 0);
  for (const StepTime& step : model->step_times()) EXPECT_EQ(step.seconds, 0) << step.name;
  model->profile(true);
  expect_filters(*model, 1);
  const std::vector<StepTime> times = model->step_times();
  ASSERT_EQ(times.size(), 3);
  EXPECT_EQ(times[1].name, "filter");
  EXPECT_EQ(times[1].kernel_class, "conv1d");
  EXPECT_EQ(times[1].kernel, 1);
  EXPECT_EQ(times[2].kernel_class, "");
  EXPECT_EQ(times[1].flops, 5.0 * kLength);
  EXPECT_EQ(times[1].bytes, 8.0 * kLength);
  EXPECT_EQ(times[1].least_flops, 3.0 * kLength);
  for (const StepTime& step : times) {
    EXPECT_GT(step.seconds, 0) << step.name;
    EXPECT_LT(step.seconds, 10) << step.name;
  }
}

TEST(header, is_c_and_names_the_tensors) {
  const Folder folder;
  ArtifactSpec spec = filter_spec(kernels());
  spec.prefix = "net";
  spec.inputs[0].name = "evil */ name\n";
  ASSERT_TRUE(write_header(spec, folder.file("net.h")).ok());
  const std::string text = testing::read_file(folder.file("net.h"));
  EXPECT_NE(text.find("input 0: evil * / name\\x0a f32[1, 1000]"), std::string::npos) << text;
  EXPECT_NE(text.find("output 0: y f32[1, 1000]"), std::string::npos) << text;
  EXPECT_NE(text.find("int net_create(net** out, int num_threads);"), std::string::npos) << text;
  EXPECT_NE(text.find("int net_abi_version(void);"), std::string::npos) << text;
  EXPECT_NE(text.find("#ifndef net_H_"), std::string::npos) << text;
  EXPECT_EQ(text.find("hone_model"), std::string::npos) << text;
  const std::string check = "cc -std=c99 -Wall -Wextra -Wpedantic -Werror -fsyntax-only ";
  EXPECT_EQ(std::system((check + folder.file("net.h")).c_str()), 0);
}

// Names that a compiler could take for the end of the comment, or would warn of.
TEST(header, compiles_whatever_the_names) {
  const Folder folder;
  ArtifactSpec spec = filter_spec(kernels());
  spec.name = "*/ #error \n/* model \\";
  spec.inputs[0].name = "a/*b**/ \?\?/\n*/ \\\n \\";
  spec.outputs[0].name = "\xFF\xC0\xAF \xE2\x80\xAE turned \xC3\xA9";
  spec.outputs[1].name = "/";
  ASSERT_TRUE(write_header(spec, folder.file("model.h")).ok());
  for (const char* compiler : {"cc -std=c99", "cc -std=gnu17 -trigraphs", "c++ -x c++ -std=c++11",
                               "c++ -x c++ -std=c++23"}) {
    const std::string check = fmt::format("{} -Wall -Wextra -Wpedantic -Werror -fsyntax-only {}",
                                          compiler, folder.file("model.h"));
    EXPECT_EQ(std::system(check.c_str()), 0) << compiler;
  }
}

}  // namespace
}  // namespace hone::artifact
