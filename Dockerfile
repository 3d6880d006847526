# A container with everything, for those who prefer one; nothing here is needed outside it.
#   docker build -t huge_ctr . && docker run --gpus all --rm -v "$PWD/runs:/huge_ctr/runs" huge_ctr
FROM nvidia/cuda:13.0.0-devel-ubuntu24.04
WORKDIR /huge_ctr
COPY third_party/install.sh third_party/install.sh
RUN apt-get update && apt-get install -y --no-install-recommends python3-pip && third_party/install.sh --all && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake --preset cuda && cmake --build --preset cuda --target huge_ctr data_generator criteo2hugectr preprocess data_inspect feature_spec table_inspect
# With HCTR_BIN_DIR the samples build nothing again.
ENV PATH="/huge_ctr/build/cuda/bin:${PATH}" HCTR_BIN_DIR=/huge_ctr/build/cuda/bin
CMD ["samples/quickstart/run.sh"]
