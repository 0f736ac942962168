# The scheduler as an image: docker build -t muster:0.1.0 .
# Every package comes from uv.lock, compared with its hash. Pin the base by digest for builds that repeat byte by byte:
# docker build --build-arg BASE=python@sha256:… .
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
WORKDIR /src
ENV UV_PROJECT_ENVIRONMENT=/opt/muster UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never SOURCE_DATE_EPOCH=315532800
COPY deploy/image/uv.txt deploy/image/uv.txt
RUN pip install --no-cache-dir --require-hashes -r deploy/image/uv.txt
COPY pyproject.toml uv.lock README.md LICENSE ./
COPY examples ./examples
COPY src ./src
RUN uv sync --frozen --no-dev --no-editable

FROM ${BASE}
COPY --from=build /opt/muster /opt/muster
ENV PATH=/opt/muster/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["muster"]
CMD ["scheduler"]
