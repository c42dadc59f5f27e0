#include "manual_page.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "hone/version.h"

namespace hone::tool {
namespace {

// A text as troff prints it as it is: one paragraph.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (result.empty() && (c == '.' || c == '\'')) result += "\\&";
    switch (c) {
      case '\\': result += "\\e"; break;
      case '-': result += "\\-"; break;
      case '\n': result += ' '; break;
      default: result += c;
    }
  }
  return result;
}

std::string in_bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string in_italics(const std::string& text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string program(const CommandText& command) {
  return command.path.empty() ? "hone" : "hone " + command.path;
}

// ".TP", then the names with the value and the default, then the text.
std::string entry(const OptionText& option, bool positional) {
  std::vector<std::string> names;
  for (const std::string& name : option.names)
    names.push_back(positional ? in_italics(option.value) : in_bold(name));
  std::string text = fmt::format(".TP\n{}", fmt::join(names, ", "));
  if (!positional && !option.value.empty()) text += " " + in_italics(option.value);
  if (!option.initial.empty()) text += fmt::format(" (default: {})", escaped(option.initial));
  if (option.required && !positional) text += " (required)";
  return fmt::format("{}\n{}\n", text, escaped(option.text));
}

std::string synopsis(const CommandText& command) {
  std::string text = in_bold(program(command)) + " [\\fIOPTIONS\\fR]";
  for (const OptionText& positional : command.positionals)
    text += " " + in_italics(positional.value);
  if (!command.commands.empty()) text += " \\fICOMMAND\\fR";
  return text;
}

std::string commands(const CommandText& command) {
  std::string text;
  for (const CommandText& below : command.commands)
    text += fmt::format(".TP\n.BR {} (1)\n{}\n", escaped(manual_name(below)), escaped(below.text));
  return text.empty() ? "" : ".SH COMMANDS\n" + text;
}

std::string entries(const char* title, const std::vector<OptionText>& options, bool positional) {
  std::string text;
  for (const OptionText& option : options) text += entry(option, positional);
  return text.empty() ? "" : fmt::format(".SH {}\n{}", title, text);
}

}  // namespace

std::string manual_name(const CommandText& command) {
  std::string name = program(command);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string manual_page(const CommandText& command) {
  std::string title = manual_name(command);
  std::transform(title.begin(), title.end(), title.begin(), [](char c) {
    return static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  });
  return fmt::format(
      ".TH {} 1 \"\" \"Hone {}\" \"Hone\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}\n"
      ".SH DESCRIPTION\n{}.\n{}{}{}.SH NOTES\n{}\n.SH SEE ALSO\n{}\n",
      escaped(title), version(), escaped(manual_name(command)), escaped(brief(command.text)),
      synopsis(command), escaped(command.text), commands(command),
      entries("ARGUMENTS", command.positionals, true), entries("OPTIONS", command.options, false),
      escaped(command.footer),
      command.path.empty() ? "\\fBhone doctor\\fR says what a machine lacks for tuning."
                           : ".BR hone (1)");
}

}  // namespace hone::tool
