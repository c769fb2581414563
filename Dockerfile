# situate in a container: docker build -t localhost/situate:0.1.0 .
# What is installed is the wheel and what it depends on, in an environment of its own; nothing of how it was built stays.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
COPY examples ./examples
RUN pip wheel --no-cache-dir --wheel-dir /wheels .
RUN python -m venv --without-pip /opt/situate \
 && pip --python /opt/situate/bin/python install --no-cache-dir --no-index --find-links /wheels situate

FROM python:${PYTHON}-slim
RUN pip uninstall --yes --root-user-action=ignore pip
COPY --from=build /opt/situate /opt/situate
ENV PATH=/opt/situate/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["situate"]
CMD ["--help"]
EXPOSE 10259
