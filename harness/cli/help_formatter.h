// --help that fits 80 columns: descriptions wrap, and so do the paragraphs of a command's details.
#pragma once

#include <memory>

namespace CLI {
class FormatterBase;
}

namespace shakedown::cli {

std::shared_ptr<CLI::FormatterBase> MakeHelpFormatter();

}  // namespace shakedown::cli
