// remote/model_messages.h - the bodies of ModelCall and ModelReply: the arguments and answers of
// the functions of a model (ModelFunction).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hone/measure/operands.h"
#include "hone/model.h"
#include "hone/remote/protocol.h"

namespace hone::remote {

struct LoadModel {
  std::string name;  // the library's, for messages
  int32_t threads = 0;
  double time_limit = 0;  // both as LoadOptions
};

struct ModelFacts {  // the answer of kLoad
  std::vector<ModelTensor> inputs, outputs;
  std::string device;
  int64_t device_bytes = 0;
};

struct NamedShape {  // for kSetShape, and for kShape, which answers with one
  bool is_output = false;
  int32_t index = 0;
  Shape shape;
};

struct Part {  // a part of a memory
  int64_t offset = 0, bytes = 0;
};

struct RunModel {
  int32_t most = 1;    // runs
  double seconds = 0;  // after which no other run begins
  bool profile = false;
  std::vector<Part> inputs;  // their places in the memory that was offered
};

// The answer of kRun. The outputs lie in memory that kFetch reads.
struct RunReport {
  std::vector<double> seconds;       // each run's
  std::vector<StepTime> steps;       // those of the last run, if it was profiled
  std::vector<double> step_seconds;  // all steps of the first run, then those of the second, ...
  std::vector<Shape> shapes;
  std::vector<Part> outputs;
  int64_t bytes = 0;  // the size of the memory
  Digest digest;      // its hash
  int64_t device_bytes = 0;
};

// For kFetch is a Part, and it answers with the bytes.

// Returns whether the extents, and their product, may be those of an array.
[[nodiscard]] bool is_sound(const Shape& shape);
// Returns whether a part is one of a memory of so many bytes.
[[nodiscard]] bool lies_in(const Part& part, int64_t bytes);

// Returns the bytes of one of these structs, or a struct of bytes; an error says that they are
// none.
template <typename T>
[[nodiscard]] std::string to_body(const T& value);
template <typename T>
[[nodiscard]] Result<T> from_body(std::string_view bytes);

}  // namespace hone::remote
