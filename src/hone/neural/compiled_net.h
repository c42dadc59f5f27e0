// compiled_net.h - a net of net_file.h, compiled by Hone itself for batches of a fixed size. The
// library is kept in a folder, so that it is compiled once.
#pragma once

#include <functional>
#include <optional>

#include "hone/base/file.h"
#include "hone/base/input_file.h"
#include "hone/codegen/loaded_model.h"
#include "hone/graph/graph.h"
#include "hone/neural/net_file.h"

namespace hone {

// Candidates that a compiled net scores in one run; the rest of an incomplete batch is padding, so
// it is no larger than a point has neighbours. Larger ones are not faster.
inline constexpr int64_t kNetBatch = 16;

// Writes the library of a net's graph, with the C prefix kNetPrefix and for one thread. It is made
// by whoever can compile models, a layer above (session/net_library.h).
using NetCompiler = std::function<Status(graph::Graph net, const std::string& library)>;
inline constexpr const char* kNetPrefix = "hone_net";

// Where its library is: the name of an open file, or a temporary one, which goes with this object.
struct CompiledNet {
  std::string path;
  Descriptor file;
  std::optional<TempDir> temporary;
};
// `folder`: where libraries are kept; empty, not writable or writable by others: nothing is. A
// damaged library, one that others may have changed, or one of another net, compiler or device, is
// made anew. Whenever one is written, those of the folder
// that were not used for 30 days are removed, but for the 16 used last.
[[nodiscard]] Result<CompiledNet> compile_net(const NetFile& net, const std::string& name,
                                              const std::string& folder,
                                              const NetCompiler& compiler);

}  // namespace hone
