// restored_net.h - the net that a file was written from, so that it can be changed and trained on.
#pragma once

#include "hone/neural/net_file.h"

namespace hone {

// Makes the net anew from the family and the options that the file names, with the file's weights.
// Returns an error if this net does not compute what the file computes. `name` is the name of the
// file in messages.
[[nodiscard]] Result<cost::net::Net> restore_net(const NetFile& file, const std::string& name);
// Returns the file with one output more: the input of the last layer (cost/net/head.h). Returns an
// error if the score is not linear in a layer's weights.
[[nodiscard]] Result<NetFile> file_with_head(const NetFile& file, const std::string& name);

}  // namespace hone
