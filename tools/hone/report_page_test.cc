#include "report_page.h"

#include <gtest/gtest.h>

#include "tuning_run.h"

namespace hone::tool {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

Json data_with(const std::string& text) {
  TuningRun run;
  run.name = run.model = run.device = text;
  run.notes = {text};
  run.kernels.resize(1);
  run.kernels[0].task.name = run.kernels[0].task.steps = text;
  return {{"live", false}, {"runs", {to_json(run, {})}}};
}

TEST(report_page, no_text_ends_the_data_or_becomes_html) {
  const std::string plain = report_page(data_with("x"), PageKind::kFile);
  for (const char* text : {"</script><script>alert(1)</script>", "<!--<script>", "@SCRIPT@ @DATA@",
                           "\xff\xfe", "]]>", "<b>&amp;"}) {
    const std::string page = report_page(data_with(text), PageKind::kFile);
    EXPECT_EQ(count(page, "<script"), count(plain, "<script")) << text;
    EXPECT_EQ(count(page, "</script"), count(plain, "</script")) << text;
    EXPECT_EQ(count(page, "<!--"), 0U) << text;
    EXPECT_EQ(count(page, "<b>"), 0U) << text;
  }
}

TEST(report_page, data_come_back_as_they_were) {
  const Json data = data_with("a < b </script> \\ \" \x01 é");
  EXPECT_EQ(Json::parse(page_json(data)), data);
}

TEST(report_page, a_file_asks_for_nothing) {
  const std::string page = report_page(data_with("x"), PageKind::kFile);
  EXPECT_EQ(count(page, "connect-src 'none'"), 1U);
  EXPECT_EQ(count(page, "default-src 'none'"), 1U);
  EXPECT_EQ(count(page, "https:"), 0U);
  EXPECT_EQ(count(page, "http:"), 1U);  // the name of SVG
  EXPECT_EQ(count(page, " src="), 0U);
  EXPECT_EQ(count(page, "@STYLE@") + count(page, "@DATA@") + count(page, "@TITLE@"), 0U);
  EXPECT_EQ(count(report_page(data_with("x"), PageKind::kLive), "connect-src 'self'"), 1U);
}

}  // namespace
}  // namespace hone::tool
