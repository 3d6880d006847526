# An image with everything, for those who prefer one; nothing here is needed outside it. The first stage builds, the
# second has what runs need and runs as a user without rights.
#   docker build -t huge_ctr .
#   docker run --gpus all --rm -v "$PWD/runs:/huge_ctr/runs" huge_ctr                # the quickstart
#   docker run --gpus all --rm -v "$PWD:/work" -w /work huge_ctr huge_ctr --train config.json
# Without CUDA:
#   docker build -t huge_ctr --build-arg PRESET=cpu --build-arg BUILD=ubuntu:24.04 --build-arg RUN=ubuntu:24.04 .
# The user has the number 1000: a mounted folder has to be writable for it, or take --user.
ARG BUILD=nvidia/cuda:13.0.0-devel-ubuntu24.04
ARG RUN=nvidia/cuda:13.0.0-runtime-ubuntu24.04

FROM ${BUILD} AS build
ARG PRESET=cuda
WORKDIR /build
COPY third_party/install.sh third_party/install.sh
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3-pip \
 && third_party/install.sh --all
COPY . .
RUN cmake --preset ${PRESET} -DHCTR_TESTS=OFF -DHCTR_UNITY=ON \
 && cmake --build --preset ${PRESET} \
 && cmake --install build/${PRESET} --prefix /opt/huge_ctr --strip \
 && python/build_wheel.py --whole build/${PRESET} /opt/huge_ctr/wheel

FROM ${RUN}
# Arrow comes with pyarrow, where the plug-in for Parquet was built with it. The wheel is for `import huge_ctr`.
COPY --from=build /opt/huge_ctr /opt/huge_ctr
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libopenblas0 libopenmpi3t64 libyaml-cpp0.8 libzstd1 python3-pip zlib1g \
 && python3 -m pip install --no-cache-dir --break-system-packages pandas pyarrow /opt/huge_ctr/wheel/*.whl \
 && rm -rf /var/lib/apt/lists/*
# Ubuntu's image has a user of this number, CUDA's too: it gets a folder to write to.
RUN mkdir -p /huge_ctr/runs && cp -r /opt/huge_ctr/share/huge_ctr/samples /huge_ctr && chown -R 1000:1000 /huge_ctr
ENV PATH="/opt/huge_ctr/bin:${PATH}" HCTR_BIN_DIR=/opt/huge_ctr/bin
USER 1000:1000
WORKDIR /huge_ctr
CMD ["samples/quickstart/run.sh"]
