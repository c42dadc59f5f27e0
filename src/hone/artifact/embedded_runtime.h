// artifact/embedded_runtime.h - the runtime's static library and the text of its C header, as bytes
// of this program, so that artifacts can be made on any machine.
#pragma once

#include <string_view>

namespace hone::artifact {

[[nodiscard]] std::string_view runtime_archive();      // libhone_runtime.a
[[nodiscard]] std::string_view runtime_header_text();  // runtime/hone_model.h

}  // namespace hone::artifact
