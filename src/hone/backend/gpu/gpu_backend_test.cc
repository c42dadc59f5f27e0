#include "hone/backend/gpu/gpu_backend.h"

#include <gtest/gtest.h>

#include <cstring>

#include "hone/backend/device_code.h"
#include "hone/backend/gpu/code_notes.h"
#include "hone/backend/library_code.h"
#include "hone/backend/registry.h"
#include "hone/backend/results_testing.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/pass_testing.h"
#include "hone/target/gpu_devices.h"

namespace hone::backend::gpu {
namespace {

target::Target opencl() {
  target::Gpu gpu;
  gpu.api = target::GpuApi::kOpenCl;
  gpu.arch = "opencl";
  return {.name = "opencl", .part = gpu};
}

// A program whose phases need each other, with constants that are prepared and tiles.
ir::Program phases() {
  return ir::testing::parsed(R"(program "phases" {
  constant W: f32[32]
  input X: f32[6, 32]
  packed P: f32[32]
  workspace T: f32[6, 32]
  output Y: f32[6]
  phase prepare { for i in 0..32 { P[i] = W[31 - i] * 2.0 } }
  phase {
    parallel b in 0..6 { thread t in 0..32 { T[b, t] = X[b, t] * P[t] } }
  }
  phase {
    parallel b in 0..6 {
      alloc shared s: f32[32] {
        thread t in 0..32 { s[t] = T[5 - b, t] + T[b, t] }
        barrier
        thread t in 0..1 {
          Y[b] = 0.0
          for i in 0..32 { Y[b] = Y[b] + s[i] }
        }
      }
    }
  }
}
)");
}

TEST(gpu_backend, phases_run_on_a_device_and_constants_are_packed_by_the_host) {
  const ir::Program program = phases();
  const Result<Executable> made = backend::compile(program, opencl());
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->kind, target::Kind::kGpu);
  ASSERT_EQ(made->entries.size(), 3);
  EXPECT_TRUE(made->entries[0].prepare);
  EXPECT_EQ(made->entries[1].threads, 32);
  EXPECT_EQ(made->entries[1].num_tiles, 6);
  EXPECT_EQ(prepare_part(*made).kind, target::Kind::kCpu);
  const Result<LoadedPtr> loaded = backend::load(*made);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();

  std::vector<Tensor> expected = ir::random_arguments(program, 3);
  std::vector<Tensor> found = ir::random_arguments(program, 3);  // a copy would share its memory
  ASSERT_TRUE(ir::run(program, expected).ok());
  std::vector<void*> args;
  for (size_t i = 0; i < found.size(); ++i) {
    if (backend::testing::is_written(program.params[i]))
      backend::testing::fill_with_garbage(found[i]);
    args.push_back(found[i].data());
  }
  std::vector<char> scratch(static_cast<size_t>(made->scratch_bytes) + 64);
  for (const EntryPoint& entry : made->entries) {
    for (const auto& [first, last] : {std::pair(int64_t{0}, entry.num_tiles / 2),
                                      std::pair(entry.num_tiles / 2, entry.num_tiles)}) {
      const Status ran = (*loaded)->run(entry, args.data(), scratch.data(), first, last, 0);
      ASSERT_TRUE(ran.ok()) << ran.message();
    }
  }
  EXPECT_EQ(backend::testing::difference(program, expected, found, 1e-5), "");
}

TEST(gpu_backend, equal_programs_are_the_same_content) {
  const Executable a = backend::compile(phases(), opencl()).value();
  const Executable b = backend::compile(phases(), opencl()).value();
  EXPECT_EQ(a.content, b.content);
  target::Target other = opencl();
  other.gpu().arch = "another";
  EXPECT_NE(backend::compile(phases(), other).value().content, a.content);
}

TEST(gpu_backend, more_than_the_device_has_is_an_error_before_anything_is_compiled) {
  target::Target small = opencl();
  small.gpu().threads_per_block = 16;
  Status status = backend::compile(phases(), small).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.message(), "a block of 32 threads, opencl has 16 at most");
  small.gpu().threads_per_block = 32;
  small.gpu().shared_bytes_opt_in = 100;
  status = backend::compile(phases(), small).status();
  EXPECT_EQ(status.message(), "128 bytes of shared memory, a block of opencl has 100 at most");
}

TEST(gpu_backend, code_from_elsewhere_is_checked) {
  Executable made = backend::compile(phases(), opencl()).value();
  const std::string code = made.code.str();
  made.code = code.substr(0, 40);
  EXPECT_EQ(backend::load(made).status().message(), "the code for devices is cut off");
  made.code = code + "param 3";
  EXPECT_EQ(backend::load(made).status().message(), "the notes of a kernel's code are not valid");
}

// PoCL's device as its driver describes it.
target::Target pocl() {
  const Result<target::Gpu> here = target::detect_gpu(*target::described_gpu("opencl-pocl"));
  EXPECT_TRUE(here.ok()) << here.status().message();
  return {.name = "opencl-pocl", .part = here.ok() ? *here : target::Gpu{}};
}

std::vector<DeviceCode> images_of(const Executable& executable) {
  const std::string& code = executable.code.str();
  std::vector<DeviceCode> images;
  runtime::CodeHeader header;
  std::memcpy(&header, code.data(), sizeof header);
  for (uint32_t i = 0; i < header.count; ++i) {
    const runtime::CodeImage image = runtime::code_image(code.data(), i);
    images.push_back({.format = image.format,
                      .options = image.options,
                      .device = image.device,
                      .data = std::string(static_cast<const char*>(image.data),
                                          static_cast<size_t>(image.bytes))});
  }
  return images;
}

// Returns what differs from the interpreter after a run of all phases.
std::string difference_of(const Executable& made) {
  const ir::Program program = phases();
  const Result<LoadedPtr> loaded = backend::load(made);
  if (!loaded.ok()) return loaded.status().message();
  std::vector<Tensor> expected = ir::random_arguments(program, 3);
  std::vector<Tensor> found = ir::random_arguments(program, 3);
  EXPECT_TRUE(ir::run(program, expected).ok());
  std::vector<void*> args;
  for (Tensor& tensor : found) args.push_back(tensor.data());
  std::vector<char> scratch(static_cast<size_t>(made.scratch_bytes) + 64);
  for (const EntryPoint& entry : made.entries) {
    const Status ran = (*loaded)->run(entry, args.data(), scratch.data(), 0, entry.num_tiles, 0);
    if (!ran.ok()) return ran.message();
  }
  return backend::testing::difference(program, expected, found, 1e-5);
}

TEST(gpu_backend, a_device_of_this_machine_gets_a_binary_beside_the_source) {
  target::Target device = pocl();
  device.gpu().registers_per_sm = 1;  // no other test compiles for this one
  Executable made = backend::compile(phases(), device, "first step\nsecond step").value();
  EXPECT_EQ(images_of(made).size(), 1U);
  add_library_code(made, device);
  const std::vector<DeviceCode> images = images_of(made);
  ASSERT_EQ(images.size(), 2U);
  EXPECT_EQ(images[0].format, runtime::CodeFormat::kOpenClBinary);
  EXPECT_EQ(images[1].format, runtime::CodeFormat::kOpenClSource);
  EXPECT_NE(images[1].data.find("// first step\n// second step\n"), std::string::npos)
      << images[1].data;
  EXPECT_EQ(difference_of(made), "");
  const CodeNotes notes = read_notes(made.code.str()).value();

  // The binary is what runs: here the source is none.
  std::vector<DeviceCode> other = images;
  other[1].data = "this is no source";
  Executable changed = made;
  changed.code = with_notes(encode_device_code(other), notes);
  EXPECT_EQ(difference_of(changed), "");
  // A binary of another driver is left alone, and of one that cannot be loaded the source is built.
  other = images;
  other[0].device += " of long ago";
  other[0].data = "nothing";
  changed.code = with_notes(encode_device_code(other), notes);
  EXPECT_EQ(difference_of(changed), "");
  other[0].device = images[0].device;
  changed.code = with_notes(encode_device_code(other), notes);
  EXPECT_EQ(difference_of(changed), "");
  other[1].data = "this is no source";
  changed.code = with_notes(encode_device_code(other), notes);
  EXPECT_NE(difference_of(changed), "");
}

TEST(gpu_backend, code_runs_on_the_device_that_its_target_names) {
  Executable made = backend::compile(phases(), pocl()).value();
  CodeNotes notes = read_notes(made.code.str()).value();
  EXPECT_EQ(notes.device, target::driver_name(pocl().gpu()));
  notes.device = "a device that nobody has";
  made.code = with_notes(encode_device_code(images_of(made)), notes);
  const std::string message = backend::load(made).status().message();
  EXPECT_NE(message.find("a device that nobody has"), std::string::npos) << message;
}

TEST(gpu_backend, the_schedule_is_a_comment_of_what_is_inspected) {
  const std::shared_ptr<const Backend> gpus = of(target::Kind::kGpu).value();
  target::Target other = opencl();
  other.gpu().arch = "of a comment";
  const Executable made = gpus->compile(phases(), other, "a step\nmore").value();
  const Inspection found = gpus->inspect(phases(), made, other).value();
  ASSERT_FALSE(found.loops.empty());
  ASSERT_GT(found.loops[0].text.size(), 2U);
  EXPECT_EQ(found.loops[0].text[0], "// a step");
  EXPECT_EQ(found.loops[0].text[1], "// more");
}

TEST(code_notes, are_read_as_they_were_written) {
  const std::string container = backend::compile(phases(), opencl()).value().code.str();
  const Result<CodeNotes> params = read_notes(container);
  ASSERT_TRUE(params.ok());
  ASSERT_EQ(params->params.size(), 5);
  EXPECT_EQ(params->params[1].bytes, 6 * 32 * 4);
  EXPECT_FALSE(params->params[2].written);
  EXPECT_TRUE(params->params[3].written);
  const Result<CodeNotes> more = read_notes(with_notes(
      container,
      {{}, {{"k", 40, 16, 8, 4096, 3}}, "a device", "split(s, i, [4])\n\nfuse(s, [i, j])"}));
  ASSERT_TRUE(more.ok());
  ASSERT_EQ(more->kernels.size(), 1);
  EXPECT_EQ(more->kernels[0].symbol, "k");
  EXPECT_EQ(more->kernels[0].registers, 40);
  EXPECT_EQ(more->kernels[0].stack_bytes, 16);
  EXPECT_EQ(more->kernels[0].spill_bytes, 8);
  EXPECT_EQ(more->kernels[0].shared_bytes, 4096);
  EXPECT_EQ(more->kernels[0].blocks, 3);
  EXPECT_EQ(more->device, "a device");
  EXPECT_EQ(more->schedule, "split(s, i, [4])\n\nfuse(s, [i, j])\n");
}

}  // namespace
}  // namespace hone::backend::gpu
