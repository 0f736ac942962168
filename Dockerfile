# The scheduler as an image. Build with: docker build -t muster:0.1.0 .
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/muster && /opt/muster/bin/pip install --no-cache-dir .

FROM python:3.11-slim
COPY --from=build /opt/muster /opt/muster
ENV PATH=/opt/muster/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["muster"]
CMD ["scheduler"]
