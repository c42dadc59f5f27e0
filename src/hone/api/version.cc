#include "hone/version.h"

#include "hone/runtime/hone_model.h"

namespace hone {

std::string_view version() { return HONE_VERSION; }
int abi_version() { return HONE_ABI_VERSION; }

}  // namespace hone
