#include "completion.h"

#include <fmt/ranges.h>

#include <map>

#include "option_texts.h"
#include "shell_word.h"

namespace hone::tool {
namespace {

std::vector<const CommandText*> all_of(const CommandText& root) {
  std::vector<const CommandText*> all;
  for_each_command(root, [&](const CommandText& command) { all.push_back(&command); });
  return all;
}

// 'tune' | 'compile' | 'db' | 'db show' | ...: all but the program itself.
std::string paths(const CommandText& root, const char* separator) {
  std::vector<std::string> names;
  for (const CommandText* command : all_of(root)) {
    if (!command->path.empty()) names.push_back(quoted(command->path));
  }
  return fmt::format("{}", fmt::join(names, separator));
}

std::string last_word(const CommandText& command) {
  return command.path.substr(command.path.find_last_of(' ') + 1);
}

std::vector<std::string> option_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// The patterns of a case for what stands before a value, 'tune --device' | 'compile --device', by
// the words to offer. Files are offered where these are none.
std::map<std::vector<std::string>, std::vector<std::string>> patterns_of_values(
    const CommandText& root) {
  std::map<std::vector<std::string>, std::vector<std::string>> patterns;
  for (const CommandText* command : all_of(root)) {
    for (const OptionText& option : command->options) {
      if (option.value.empty()) continue;
      for (const std::string& name : option.names)
        patterns[option.words].push_back(quoted(command->path + " " + name));
    }
  }
  return patterns;
}

std::string cases_of_values(const CommandText& root, const char* files, const char* words) {
  std::string text;
  for (const auto& [offered, before] : patterns_of_values(root)) {
    text += fmt::format(
        "    {})\n      {}\n      return ;;\n", fmt::join(before, " | "),
        offered.empty() ? files : fmt::format(fmt::runtime(words), fmt::join(offered, " ")));
  }
  return text;
}

std::string bash_script(const CommandText& root) {
  std::string cases;
  for (const CommandText* command : all_of(root)) {
    std::vector<std::string> below;
    for (const CommandText& c : command->commands) below.push_back(last_word(c));
    cases +=
        fmt::format("    {})\n      words='{}'\n      options='{}' ;;\n", quoted(command->path),
                    fmt::join(below, " "), fmt::join(option_names(*command), " "));
  }
  return fmt::format(R"(# Completion of hone in bash:
#   hone completion bash > ~/.local/share/bash-completion/completions/hone
# Where bash-completion is not installed: source <(hone completion bash)
_hone() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command='' words='' options='' i
  # Bash takes --device=host for three words.
  if [[ $current == = ]]; then
    current=''
  elif [[ $before == = ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${{command:+$command }}${{COMP_WORDS[i]}}" in
      {})
        command="${{command:+$command }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  COMPREPLY=()
  case "$command $before" in
{}  esac
  case $command in
{}  esac
  [[ $current == -* ]] && words=$options
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _hone hone
)",
                     paths(root, " | "),
                     cases_of_values(root, ":", "COMPREPLY=($(compgen -W '{}' -- \"$current\"))"),
                     cases);
}

std::string zsh_script(const CommandText& root) {
  std::string cases;
  for (const CommandText* command : all_of(root)) {
    cases += fmt::format("    {})\n      commands=(\n", quoted(command->path));
    for (const CommandText& below : command->commands)
      cases += fmt::format("        {}\n", quoted(last_word(below) + ":" + brief(below.text)));
    cases += "      )\n      options=(\n";
    for (const OptionText& option : command->options) {
      for (const std::string& name : option.names)
        cases += fmt::format("        {}\n", quoted(name + ":" + brief(option.text)));
    }
    cases += "      ) ;;\n";
  }
  return fmt::format(R"(#compdef hone
# Completion of hone in zsh: hone completion zsh > FOLDER/_hone, where FOLDER is in $fpath.
_hone() {{
  local command='' before=${{words[CURRENT-1]}} i
  local -a commands options
  if [[ $PREFIX == --*=* ]]; then
    before=${{PREFIX%%=*}}
    compset -P '*='
  fi
  for ((i = 2; i < CURRENT; i++)); do
    case "${{command:+$command }}${{words[i]}}" in
      {})
        command="${{command:+$command }}${{words[i]}}" ;;
    esac
  done
  case "$command $before" in
{}  esac
  case $command in
{}  esac
  if [[ $PREFIX == -* ]]; then
    _describe option options
  elif (( $#commands )); then
    _describe command commands
  else
    _files
  fi
}}
if [[ $funcstack[1] == _hone ]]; then
  _hone "$@"
else
  compdef _hone hone
fi
)",
                     paths(root, " | "), cases_of_values(root, "_files", "compadd -- {}"), cases);
}

// In fish, a backslash before an apostrophe stands for that, also inside of apostrophes.
std::string fish_quoted(const std::string& text) { return quoted(text, "\\'"); }

std::string fish_option(const CommandText& command, const OptionText& option) {
  std::string text = fmt::format("complete -c hone -n '__hone_at {}'", command.path);
  for (const std::string& name : option.names) {
    text += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2))
                                   : fmt::format(" -s {}", name.substr(1));
  }
  if (!option.value.empty()) text += option.words.empty() ? " -r" : " -x";
  if (!option.words.empty())
    text += fmt::format(" -a {}", fish_quoted(fmt::format("{}", fmt::join(option.words, " "))));
  return fmt::format("{} -d {}\n", text, fish_quoted(brief(option.text)));
}

std::string fish_script(const CommandText& root) {
  std::string lines;
  for (const CommandText* command : all_of(root)) {
    for (const CommandText& below : command->commands) {
      lines += fmt::format("complete -c hone -n '__hone_at {}' -f -a {} -d {}\n", command->path,
                           last_word(below), fish_quoted(brief(below.text)));
    }
    for (const OptionText& option : command->options) lines += fish_option(*command, option);
  }
  return fmt::format(
      R"(# Completion of hone in fish: hone completion fish > ~/.config/fish/completions/hone.fish
# Whether the words so far name this command.
function __hone_at
    set -l command ''
    for word in (commandline -opc)[2..-1]
        switch (string trim -- "$command $word")
            case {}
                set command (string trim -- "$command $word")
        end
    end
    test "$command" = "$argv"
end
{})",
      paths(root, " "), lines);
}

}  // namespace

std::vector<std::string> shell_names() { return {"bash", "zsh", "fish"}; }

Result<std::string> completion_script(std::string_view shell, const CommandText& root) {
  if (shell == "bash") return bash_script(root);
  if (shell == "zsh") return zsh_script(root);
  if (shell == "fish") return fish_script(root);
  return invalid("'{}' is no shell that can be completed in, expected {}", shell,
                 join_names(shell_names()));
}

}  // namespace hone::tool
