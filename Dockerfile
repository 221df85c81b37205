# One image for every process of the site; docker-compose.yml says which command each container runs.
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap git \
    && rm -rf /var/lib/apt/lists/*

ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    DJANGO_SETTINGS_MODULE=dashboard.settings \
    PACELINE_HOME=/var/lib/paceline

WORKDIR /app

# What is installed changes rarely: these layers stay cached while the code changes.
COPY pyproject.toml constraints.txt README.md ./
COPY trainers/harness trainers/harness
# The constraints name torch's release; an index of CPU builds makes a smaller image:
#   docker compose build --build-arg PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
ARG PIP_EXTRA_INDEX_URL
RUN pip install --no-cache-dir -c constraints.txt -e trainers/harness -e '.[site,host,torch]'

# What three of the standard benchmarks need beside torch, left out by default (licences: docs/operations.md):
#   docker compose build --build-arg COMPONENTS=emulator,service
ARG COMPONENTS
RUN if [ -n "$COMPONENTS" ]; then pip install --no-cache-dir -c constraints.txt -e ".[$COMPONENTS]"; fi

COPY . .

# Whoever may request runs executes code here: not as root.
RUN useradd --create-home --uid 1000 paceline && install -d -o paceline -g paceline -m 0700 /var/lib/paceline
USER paceline
VOLUME /var/lib/paceline

EXPOSE 8000
CMD ["python", "-m", "gunicorn", "dashboard.wsgi:application", "--bind", "0.0.0.0:8000"]
