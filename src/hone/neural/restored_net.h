// restored_net.h - the net that a file was written from, so that it can be changed and trained on.
#pragma once

#include "hone/neural/net_file.h"

namespace hone {

// Made anew from the family and the options that the file names, with the file's weights. An error
// if that is not what the file computes. `name`: of the file, for messages.
[[nodiscard]] Result<cost::net::Net> restore_net(const NetFile& file, const std::string& name);

}  // namespace hone
