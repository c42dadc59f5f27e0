#include "report_page.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "hone/base/printable.h"

#include "html_text.h"

// The build sets the folder of these files.
#define HONE_PAGE_FILE(name, file)                                                    \
  "hone_page_" name ":\n.incbin \"" HONE_PAGE_FOLDER "/" file "\"\nhone_page_" name   \
  "_end:\n.globl hone_page_" name ", hone_page_" name "_end\n.hidden hone_page_" name \
  ", hone_page_" name "_end\n"

__asm__(".pushsection .rodata\n" HONE_PAGE_FILE("html", "report.html")
            HONE_PAGE_FILE("css", "report.css") HONE_PAGE_FILE("dom", "dom.js")
                HONE_PAGE_FILE("plot", "plot.js") HONE_PAGE_FILE("diff", "diff.js")
                    HONE_PAGE_FILE("kernels", "kernels.js")
                        HONE_PAGE_FILE("sections", "sections.js")
                            HONE_PAGE_FILE("main", "main.js") ".popsection\n");

#define HONE_PAGE_TEXT(name)                                                                   \
  extern "C" {                                                                                 \
  __attribute__((visibility("hidden"))) extern const char hone_page_##name[];                  \
  __attribute__((visibility("hidden"))) extern const char hone_page_##name##_end[];            \
  }                                                                                            \
  static std::string_view name##_text() {                                                      \
    return {hone_page_##name, static_cast<size_t>(hone_page_##name##_end - hone_page_##name)}; \
  }

namespace hone::tool {
namespace {

HONE_PAGE_TEXT(html)
HONE_PAGE_TEXT(css)
HONE_PAGE_TEXT(dom)
HONE_PAGE_TEXT(plot)
HONE_PAGE_TEXT(diff)
HONE_PAGE_TEXT(kernels)
HONE_PAGE_TEXT(sections)
HONE_PAGE_TEXT(main)

std::string script() {
  std::string text = "\"use strict\";\n";
  for (const std::string_view part :
       {dom_text(), plot_text(), diff_text(), kernels_text(), sections_text(), main_text()})
    text += part;
  return text;
}

// The name of the first run, for readers who list files by their titles.
std::string title_of(const Json& data) {
  if (!data.contains("runs") || data["runs"].empty()) return "Hone report";
  const Json& run = data["runs"][0];
  const std::string model = run.value("model", ""), name = run.value("name", "");
  return fmt::format("Hone report: {}", printable(model.empty() ? name : model));
}

}  // namespace

std::string page_json(const Json& data) {
  std::string text;
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text;
}

std::string report_page(const Json& data, PageKind kind) {
  const std::array<std::pair<std::string_view, std::string>, 5> parts = {
      {{"@CONNECT@", kind == PageKind::kLive ? "'self'" : "'none'"},
       {"@TITLE@", escape_html(title_of(data))},
       {"@STYLE@", std::string(css_text())},
       {"@DATA@", page_json(data)},
       {"@SCRIPT@", script()}}};
  // The marks stand in this order, so what replaces one is not looked at again.
  std::string page;
  std::string_view rest = html_text();
  for (const auto& [mark, text] : parts) {
    const size_t at = rest.find(mark);
    page += rest.substr(0, at);
    page += text;
    rest.remove_prefix(at + mark.size());
  }
  page += rest;
  return page;
}

}  // namespace hone::tool
