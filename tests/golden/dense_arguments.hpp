// The command line of dense_mlp: those of the example's options that a plain program has.
#pragma once

#include <map>
#include <stdexcept>
#include <string>

#include "dense_optimizers.hpp"
extern "C" {
#include "fashion_mnist.h"
#include "mlp.h"
}

struct Arguments {
  std::string data = FASHION_MNIST_DIR;
  mlp_dtype_t dtype = MLP_F64;
  mlp_arithmetic_t arithmetic = MLP_DOUBLE;  // as the example's --golden-init
  int batch = 128;
  long long steps = 200;
  Settings settings;
};

inline void set_option(Settings& settings, const std::string& text) {
  const std::string key = text.substr(0, text.find('=')), value = text.substr(text.find('=') + 1);
  const std::map<std::string, double*> numbers = {{"lr", &settings.lr},
                                                  {"beta1", &settings.beta1},
                                                  {"beta2", &settings.beta2},
                                                  {"eps", &settings.eps},
                                                  {"momentum", &settings.momentum},
                                                  {"weight_decay", &settings.weight_decay},
                                                  {"max_grad_norm", &settings.max_grad_norm}};
  if (key == "optimizer")
    settings.optimizer = value;
  else if (key == "accumulate")
    settings.accumulate = std::stoi(value);
  else
    *numbers.at(key) = std::stod(value);
}

inline void set_argument(Arguments& arguments, const std::string& name, const std::string& value) {
  if (name == "--data")
    arguments.data = value;
  else if (name == "--dtype")
    arguments.dtype = value == "f64" ? MLP_F64 : MLP_F32;
  else if (name == "--batch")
    arguments.batch = std::stoi(value);
  else if (name == "--steps")
    arguments.steps = std::stoll(value);
  else if (name == "-o")
    set_option(arguments.settings, value);
  else
    throw std::invalid_argument("dense_mlp: unknown argument " + name);
}

inline Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) set_argument(arguments, argv[i], argv[i + 1]);
  return arguments;
}
