// graph/import_onnx.h - makes a Graph from an ONNX file: opsets 7 to 28, weights inside or in
// external data, shapes inferred. Every defect of the model is one error that names file and node.
#pragma once

#include <map>
#include <set>
#include <string>

#include "hone/graph/graph.h"
#include "hone/shape_range.h"

namespace hone {
struct InputNames;  // hone/open_model.h
}

namespace hone::graph {

struct ImportOptions {
  std::map<std::string, Shape> shapes;  // for inputs whose shape the model leaves open (--shape)
  // For inputs with dimensions that differ from run to run (--shape NAME=1..8x3), and the ranges of
  // symbols (--shape batch=1..8). The graph is then that of the largest shapes (Graph::varying).
  std::map<std::string, ShapeRange> ranges;
  // Gives dimensions that stay open a range by their name or place (open_shapes.h). Otherwise it is
  // an error that the model has some.
  bool open_ranges = false;
  // The ends of ranges that the rule gives. If the model is not valid there, others are taken
  // (import_ranges.h).
  int64_t most_batch = 8, most_sequence = 512;
  // In an input of rank 3 that begins with a number, as the state of a recurrent net does, the
  // second extent is that of the batch, if it is open and has no name. The importer finds it where
  // a model is not valid otherwise.
  bool batched_states = false;
  // Sides of images that have a range are multiples of this, as the ends of the range have to be.
  // The importer finds it where a model is not valid at all sizes.
  int64_t side_step = 1;
  // Likewise, for other symbols by their names, as of samples in frames.
  std::map<std::string, int64_t> steps;
  // If not null, receives one line that says which ranges were given so; empty if none.
  std::string* taken = nullptr;
  // Inputs that become constants (--bind), as their value decides a shape.
  std::map<std::string, Tensor> bind;
  // If not null, receives the inputs that have to be bound, if their absence was the error.
  std::vector<std::string>* unbound = nullptr;
  // Allows external data to be a symbolic link that leads out of the model's folder, as in a cache
  // of Hugging Face; the file that the link leads to is trusted. A path that leaves the folder is
  // refused.
  bool linked_data = false;
  int64_t max_turns = kMaxTurns;  // Graph::max_turns
  bool repeats_steps = true;      // Graph::repeats_steps
  // If not null, receives the files that are read: the model and its external data.
  std::set<std::string>* files = nullptr;
};

[[nodiscard]] Result<Graph> import_onnx(const std::string& path, const ImportOptions& options = {});
// Imports the model and binds those of the `available` inputs whose values decide shapes, and no
// others.
[[nodiscard]] Result<Graph> import_onnx_binding(const std::string& path, ImportOptions options,
                                                const std::map<std::string, Tensor>& available);
[[nodiscard]] Result<InputNames> input_names(const std::string& path);
// Imports a model from memory. External data is looked up in `folder`.
[[nodiscard]] Result<Graph> import_onnx_bytes(const void* data, size_t size,
                                              const std::string& file, const std::string& folder,
                                              const ImportOptions& options = {});

}  // namespace hone::graph
