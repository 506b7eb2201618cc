// classify MODEL CHANNELS HEIGHT WIDTH < PIXELS: the best class of each float32 image, from a TorchScript file.
#include <torch/script.h>

#include <iostream>
#include <iterator>

int main(int, char** argv) {
  std::string bytes{std::istreambuf_iterator<char>(std::cin), {}};
  auto pixels = torch::from_blob(bytes.data(), {long(bytes.size()) / 4})
                    .reshape({-1, atol(argv[2]), atol(argv[3]), atol(argv[4])});
  c10::InferenceMode guard;
  auto answer = torch::jit::load(argv[1]).forward({pixels}).toTuple()->elements();
  for (auto best : answer[2].toTensor().select(1, 0).unbind()) std::cout << best.item<int64_t>() << "\n";
}
