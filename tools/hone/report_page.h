// tools/hone/report_page.h - the page of a report: HTML with its style, its script and its data
// inside, which needs nothing else. Its sources are in tools/hone/page.
#pragma once

#include <string>
#include <string_view>

#include "json_text.h"

namespace hone::tool {

enum class PageKind : uint8_t {
  kFile,  // it stays as it is
  kLive,  // it asks for news at data.json beside it
};
// `data` has `runs`, a list of one or two runs (tuning_run.h). No text in it can end the script or
// become HTML.
[[nodiscard]] std::string report_page(const Json& data, PageKind kind);
// JSON without a line end, and without '<', which would have a meaning inside HTML.
[[nodiscard]] std::string page_json(const Json& data);

}  // namespace hone::tool
