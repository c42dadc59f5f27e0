// model.h - runs compiled models.
//
//   hone::Result<hone::Model> model = hone::load("resnet18.so");
//   hone::Tensor image(hone::DType::kF32, model->inputs()[0].shape);
//   hone::Result<std::vector<hone::Tensor>> outputs = model->run({&image, 1});
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hone/export.h"
#include "hone/status.h"
#include "hone/tensor.h"

namespace hone {

// An input or output.
struct ModelTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;  // the largest shape, if it varies
  // For each dimension, the name of what it varies with from run to run, such as "batch" or
  // "past + seq"; "" for one that is fixed. The list is empty if none varies with the shapes of the
  // inputs.
  std::vector<std::string> dims;
  Shape least;  // the smallest shape of an input that varies
};

// The time of one step of a run: a kernel, or one phase of it. Phases of one task follow each other
// and have one name.
struct StepTime {
  std::string name;          // name of the task's first node
  std::string kernel_class;  // such as "conv2d+bias+relu"
  int kernel = 0;            // steps with equal numbers run the same code
  double seconds = 0;
  double flops = 0;
  // Limits of the task, which are 0 in older libraries: the FLOPs of the algorithm that needs the
  // fewest, and the bytes that are read and written, each counted once.
  double least_flops = 0, bytes = 0;
};

// When a thread worked on a step of the last run.
struct ThreadWork {
  int step = 0;    // index in Model::step_times()
  int thread = 0;  // 0 is the thread that called run()
  // Seconds since the start of the run. What the thread waited between its tiles counts, too.
  double begin = 0, end = 0;
};

// The time of one run, where the model runs.
struct RunTime {
  double seconds = 0;
  std::vector<StepTime> steps;  // while profile() is enabled
};

struct LoadOptions {
  int num_threads = 0;  // 0: all cores that this process may use
  // For a library for a GPU: the most seconds that a run may take; 0: any. A run that takes longer
  // is Code::kTimeout, and this process has lost the GPU, since the kernel may run until it ends.
  double time_limit = 0;
};

class ModelBody;

// A library that is loaded, with memory and threads of its own. Different objects may run at the
// same time, and objects of one library share the weights. It runs in this process, or on a machine
// elsewhere (open_model() with TargetOptions::machine), which then has all data of a run sent.
class HONE_API Model {
 public:
  // Loads a library. The file is inspected first: only a sound library whose interface has a
  // version that is known is loaded, so no code of any other library runs. With `num_threads` of 0
  // it runs on all cores that this process may use.
  [[nodiscard]] static Result<Model> load(const std::string& path, int num_threads = 0);
  [[nodiscard]] static Result<Model> load(const std::string& path, const LoadOptions& options);
  explicit Model(std::unique_ptr<ModelBody> body);  // for Hone itself: how a model is run
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  [[nodiscard]] const std::vector<ModelTensor>& inputs() const;
  [[nodiscard]] const std::vector<ModelTensor>& outputs() const;
  // Sets the shape of an input for later runs on arrays, in place of the largest. Inputs that were
  // never set follow those that were. Nothing is allocated.
  [[nodiscard]] Status set_input_shape(int input, const Shape& shape);
  // Returns the shape of an input in the next run.
  [[nodiscard]] Result<Shape> input_shape(int input) const;
  // Runs the model on dense row-major arrays in the order of inputs() and outputs(), of the shapes
  // that were set. Nothing is allocated. Calls must not overlap.
  [[nodiscard]] Status run(std::span<const void* const> inputs, std::span<void* const> outputs);
  // Runs the model on inputs of any shapes that it takes, and checks shapes and types. The outputs
  // have their actual shapes.
  [[nodiscard]] Result<std::vector<Tensor>> run(std::span<const Tensor> inputs);
  // Like the other two functions, for who times the model: runs it up to `most` times in a row on
  // the same inputs, and adds the times of these runs, which are those of the machine where it
  // runs. In this process it runs once; elsewhere as often as fits a second, so that the machine
  // need not wait for the network in between.
  [[nodiscard]] Status run(std::span<const void* const> inputs, std::span<void* const> outputs,
                           int most, std::vector<RunTime>& times);
  [[nodiscard]] Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, int most,
                                                std::vector<RunTime>& times);
  // Returns the actual shape of an output: in the next run, or in the last one if it depends on the
  // data.
  [[nodiscard]] Result<Shape> output_shape(int output) const;

  // Returns the name of the GPU or other device that the model runs on; "" for a model of CPUs. And
  // the most memory, in bytes, that it has taken there.
  [[nodiscard]] std::string device() const;
  [[nodiscard]] int64_t device_bytes() const;

  // While this is enabled, each run records the times of its steps, which are zero before the first
  // such run. It costs two readings of the clock a step.
  void profile(bool enable);
  [[nodiscard]] std::vector<StepTime> step_times() const;
  // While this is enabled, each run is profiled and records when each thread works on each step of
  // the CPU. It costs two more readings of the clock for each part of a step that a thread takes.
  // It is an error for a library of an older version of Hone, and for a model elsewhere.
  [[nodiscard]] Status trace(bool enable);
  // Returns what the last run recorded, in the order of the steps; nothing without trace().
  [[nodiscard]] std::vector<ThreadWork> thread_work() const;

 private:
  std::unique_ptr<ModelBody> body_;
};

// Returns Model::load().
[[nodiscard]] HONE_API Result<Model> load(const std::string& library, int num_threads = 0);

}  // namespace hone
