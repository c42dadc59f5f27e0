// compiled_net.h - a net of net_file.h, compiled by Hone itself for batches of a fixed size. The
// library is kept in a folder, so that it is compiled once.
#pragma once

#include <functional>
#include <optional>

#include "hone/base/file.h"
#include "hone/base/input_file.h"
#include "hone/graph/graph.h"
#include "hone/model.h"
#include "hone/neural/net_file.h"

namespace hone {

// The number of candidates that a compiled net scores in one run. The rest of an incomplete batch
// is padding, so a batch is no larger than the number of neighbours of a point. Larger batches are
// not faster.
inline constexpr int64_t kNetBatch = 16;

// Writes the library of a net's graph, with the C prefix kNetPrefix and for one thread. A layer
// above, which can compile models, provides it (session/net_library.h).
using NetCompiler = std::function<Status(graph::Graph net, const std::string& library)>;
inline constexpr const char* kNetPrefix = "hone_net";

// The library of a compiled net. `path` names the open file `file`, or a file in `temporary`, which
// is removed with this object.
struct CompiledNet {
  std::string path;
  Descriptor file;
  std::optional<TempDir> temporary;
};
// Compiles a net, or finds its library in `folder`, where libraries are kept. Nothing is kept if
// `folder` is empty, not writable, or writable by others. A library that is damaged, that others
// may have changed, or that belongs to another net, compiler or device is made anew. Whenever a
// library is written, those of the folder that were not used for 30 days are removed, except the 16
// used last.
[[nodiscard]] Result<CompiledNet> compile_net(const NetFile& net, const std::string& name,
                                              const std::string& folder,
                                              const NetCompiler& compiler);

}  // namespace hone
