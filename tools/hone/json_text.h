// tools/hone/json_text.h - JSON as --json prints it. Names come from models and files: bytes that
// are not UTF-8 are replaced, never an error.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace hone::tool {

using Json = nlohmann::ordered_json;

// Indented, with a line end.
[[nodiscard]] inline std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hone::tool
